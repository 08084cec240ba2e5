//! Enumerants, masks and extended instructions by their names in assembly text.

use std::str::FromStr;

use rspirv::grammar::{
    self, ExtInstOp, InstructionTable, NONSEMANTIC_CLSPVREFLECTION_INSTRUCTION_TABLE, OperandKind,
};
use rspirv::spirv;

fn enumerant<T: FromStr>(word: &str, number: impl Fn(T) -> u32) -> Option<u32> {
    // Split barriers have two names with the same number.
    word.parse()
        .or_else(|error| match word {
            "SplitBarrierEXT" => "SplitBarrierINTEL".parse(),
            _ => Err(error),
        })
        .ok()
        .map(number)
}

macro_rules! mask {
    ($ty:ident, $word:expr) => {{
        let mut all = Some(0);
        for part in $word.split('|') {
            let wanted = plain(part);
            let found = spirv::$ty::all()
                .iter_names()
                .find(|(name, _)| plain(name) == wanted)
                .map(|(_, flag)| flag.bits())
                .or((wanted == "NONE" || wanted == "RELAXED").then_some(0));
            all = all.zip(found).map(|(all, bits)| all | bits);
        }
        all
    }};
}

/// Removes the differences between the two spellings of a name.
fn plain(name: &str) -> String {
    let name: String = name.chars().filter(|c| *c != '_').collect::<String>().to_ascii_uppercase();
    ["KHR", "EXT"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(&name).to_owned()
}

/// Returns the number of a name for an operand kind.
pub(crate) fn enumerant_value(kind: OperandKind, word: &str) -> Option<u32> {
    macro_rules! value {
        ($ty:ident) => {
            enumerant::<spirv::$ty>(word, |value| value as u32)
        };
    }
    match kind {
        OperandKind::ImageOperands => mask!(ImageOperands, word),
        OperandKind::FPFastMathMode => mask!(FPFastMathMode, word),
        OperandKind::SelectionControl => mask!(SelectionControl, word),
        OperandKind::LoopControl => mask!(LoopControl, word),
        OperandKind::FunctionControl => mask!(FunctionControl, word),
        OperandKind::MemorySemantics => mask!(MemorySemantics, word),
        OperandKind::MemoryAccess => mask!(MemoryAccess, word),
        OperandKind::KernelProfilingInfo => mask!(KernelProfilingInfo, word),
        OperandKind::RayFlags => mask!(RayFlags, word),
        OperandKind::FragmentShadingRate => mask!(FragmentShadingRate, word),
        OperandKind::SourceLanguage => value!(SourceLanguage),
        OperandKind::ExecutionModel => value!(ExecutionModel),
        OperandKind::AddressingModel => value!(AddressingModel),
        OperandKind::MemoryModel => value!(MemoryModel),
        OperandKind::ExecutionMode => value!(ExecutionMode),
        OperandKind::StorageClass => value!(StorageClass),
        OperandKind::Dim => word.strip_prefix("Dim").or(Some(word)).and_then(|_| dimension_value(word)),
        OperandKind::ImageFormat => value!(ImageFormat),
        OperandKind::AccessQualifier => value!(AccessQualifier),
        OperandKind::Decoration => value!(Decoration),
        OperandKind::BuiltIn => value!(BuiltIn),
        OperandKind::Scope => value!(Scope),
        OperandKind::GroupOperation => value!(GroupOperation),
        OperandKind::Capability => value!(Capability),
        OperandKind::PackedVectorFormat => value!(PackedVectorFormat),
        OperandKind::CooperativeMatrixOperands => mask!(CooperativeMatrixOperands, word),
        OperandKind::FPEncoding => value!(FPEncoding),
        _ => None,
    }
}

fn dimension_value(word: &str) -> Option<u32> {
    let named =
        if word.starts_with(|c: char| c.is_ascii_digit()) { format!("Dim{word}") } else { word.to_owned() };
    enumerant::<spirv::Dim>(&named, |value| value as u32)
}

/// Returns the number of a name among the parameters of decorations, execution modes and specialization
/// operations.
pub(crate) fn parameter_value(word: &str) -> Option<u32> {
    [OperandKind::BuiltIn, OperandKind::StorageClass, OperandKind::MemoryAccess]
        .iter()
        .find_map(|kind| enumerant_value(*kind, word))
        .or_else(|| enumerant::<spirv::FPRoundingMode>(word, |value| value as u32))
        .or_else(|| enumerant::<spirv::LinkageType>(word, |value| value as u32))
        .or_else(|| enumerant::<spirv::FunctionParameterAttribute>(word, |value| value as u32))
        .or_else(|| mask!(FPFastMathMode, word))
        .or_else(|| crate::opcode::by_name(&format!("Op{word}")).map(|form| form.op as u32))
}

/// Returns true if values of a kind may have parameters.
pub(crate) fn has_parameters(kind: OperandKind) -> bool {
    matches!(
        kind,
        OperandKind::ImageOperands
            | OperandKind::LoopControl
            | OperandKind::MemoryAccess
            | OperandKind::ExecutionMode
            | OperandKind::Decoration
            | OperandKind::CooperativeMatrixOperands
    )
}

pub fn extended_instruction_number(set: &str, name: &str) -> Option<u32> {
    let table: &InstructionTable<ExtInstOp> = if set == "GLSL.std.450" {
        &grammar::GLSL_STD_450_INSTRUCTION_TABLE
    } else if set == "OpenCL.std" {
        &grammar::OPENCL_STD_100_INSTRUCTION_TABLE
    } else if set.starts_with("NonSemantic.ClspvReflection") {
        &NONSEMANTIC_CLSPVREFLECTION_INSTRUCTION_TABLE
    } else if set == "NonSemantic.Shader.DebugInfo.100" {
        &grammar::NONSEMANTIC_SHADER_DEBUGINFO_100_INSTRUCTION_TABLE
    } else if set.starts_with("NonSemantic.DebugPrintf") {
        &grammar::NONSEMANTIC_DEBUGPRINTF_INSTRUCTION_TABLE
    } else if set == "OpenCL.DebugInfo.100" {
        &grammar::OPENCL_DEBUGINFO_100_INSTRUCTION_TABLE
    } else {
        return None;
    };
    table.iter().find(|instruction| instruction.opname == name).map(|instruction| instruction.opcode.into())
}
