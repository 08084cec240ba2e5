//! Plain read-modify-writes: a load, one operation on its value, and a store through the same pointer.
//!
//! Only updates within one block are found, and only if nothing between load and store may change memory or
//! synchronize. Two pointers are the same if the same operations on the same values compute them.

use arithmetic::Instruction;
use rspirv::spirv::{GlslStd450Op, ImageOperands, Op, StorageClass};
use spirv_reader::{
    CompositeOperation, ImageOperation, MemoryOperands, SpirvConstant, SpirvFunction, SpirvInstruction,
    SpirvModule, SpirvOperation, SpirvType,
};

/// Upper bound on the depth of compared expressions.
const MAX_DEPTH: u32 = 8;

/// A load, an operation and a store of one function that an atomic instruction can replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainUpdate {
    /// Index of the load.
    pub load: usize,
    /// Index of the operation.
    pub operation: usize,
    /// Index of the store.
    pub store: usize,
    pub atomic: Op,
    /// The id of the other operand.
    pub operand: u32,
}

/// Returns the updates of a function in the order of their stores.
pub fn plain_updates(module: &SpirvModule, function: &SpirvFunction) -> Vec<PlainUpdate> {
    let stores = function.code.iter().enumerate().filter(|(_, instruction)| instruction.op == Op::Store);
    stores.filter_map(|(store, _)| update_of_store(module, function, store)).collect()
}

/// Returns the update that ends in a store.
fn update_of_store(module: &SpirvModule, function: &SpirvFunction, store: usize) -> Option<PlainUpdate> {
    let code = &function.code;
    let SpirvOperation::Store { pointer, value, .. } = module.operation(&code[store]) else { return None };
    // Only within the block of the store: load, operation and store are executed together.
    let start = code[..store].iter().rposition(|instruction| instruction.op == Op::Label)?;
    let definition_index = |id: u32| (start..store).rev().find(|index| code[*index].result == id);
    let operation = definition_index(value)?;
    let is_integer =
        matches!(module.types.get(&code[operation].ty), Some(SpirvType::Integer { bits: 32, .. }));
    if !is_integer {
        return None;
    }
    let (atomic, first, second, commutes) = atomic_form_of(module, &code[operation])?;
    let load_of = |id: u32| {
        let load = definition_index(id)?;
        let SpirvOperation::Load { pointer: from, .. } = module.operation(&code[load]) else { return None };
        let same = is_same_value(module, function, from, pointer, store, MAX_DEPTH);
        // Between load and store, nothing else may write the location or order the two.
        let is_memory_unchanged = code[load + 1..store]
            .iter()
            .all(|instruction| !module.operation(instruction).may_change_memory());
        (same && is_memory_unchanged).then_some(load)
    };
    let (load, operand) = match load_of(first) {
        Some(load) => (load, second),
        // `1 - x` has no atomic instruction, so that operands change places only if they commute.
        None => (load_of(second).filter(|_| commutes)?, first),
    };
    // An operand that is the loaded value itself has no atomic instruction.
    (operand != code[load].result).then_some(PlainUpdate { load, operation, store, atomic, operand })
}

/// A read, an operation and a write of one texel that an image atomic can replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageUpdate {
    /// Indices of read, operation and write, and of the instructions between them that move the component.
    pub read: usize,
    pub extract: Option<usize>,
    pub operation: usize,
    pub construct: Option<usize>,
    pub write: usize,
    /// The pointer to the image.
    pub image: u32,
    /// The type of the component.
    pub scalar: u32,
    pub atomic: Op,
    /// The id of the other operand.
    pub operand: u32,
}

/// Returns the updates of images with one 32-bit integer component, in the order of their writes.
pub fn image_updates(module: &SpirvModule, function: &SpirvFunction) -> Vec<ImageUpdate> {
    let writes = function.code.iter().enumerate().filter(|(_, instruction)| instruction.op == Op::ImageWrite);
    writes.filter_map(|(write, _)| update_of_image(module, function, write)).collect()
}

/// Returns the update that ends in a write of an image.
fn update_of_image(module: &SpirvModule, function: &SpirvFunction, write: usize) -> Option<ImageUpdate> {
    let code = &function.code;
    let SpirvOperation::Image(ImageOperation::Write { image, coordinate, texel, operands }) =
        module.operation(&code[write])
    else {
        return None;
    };
    if !operands.has_only(ImageOperands::NONE) {
        return None;
    }
    // Within one block, the write executes whenever the read does.
    let start = code[..write].iter().rposition(|instruction| instruction.op == Op::Label)?;
    let definition_index = |id: u32| (start..write).rev().find(|index| code[*index].result == id);
    let last = definition_index(texel)?;
    let (construct, operation) = match module.operation(&code[last]) {
        SpirvOperation::Composite(CompositeOperation::Construct { parts }) => {
            (Some(last), definition_index(*parts.first()?)?)
        }
        _ => (None, last),
    };
    let ty = code[operation].ty;
    let scalar = match module.types.get(&ty) {
        Some(SpirvType::Vector { element, .. }) => *element,
        _ => ty,
    };
    if !matches!(module.types.get(&scalar), Some(SpirvType::Integer { bits: 32, .. })) {
        return None;
    }
    let (atomic, first, second, commutes) = atomic_form_of(module, &code[operation])?;
    let read_of = |id: u32| {
        let value = definition_index(id)?;
        let (extract, read) = match module.operation(&code[value]) {
            SpirvOperation::Composite(CompositeOperation::Extract { composite, path: [0, ..] }) => {
                (Some(value), definition_index(composite)?)
            }
            _ => (None, value),
        };
        let SpirvOperation::Image(ImageOperation::Read { image: from, coordinate: at, operands }) =
            module.operation(&code[read])
        else {
            return None;
        };
        let same = |one, other| is_same_value(module, function, one, other, write, MAX_DEPTH);
        let are_texels_unchanged =
            code[read + 1..write].iter().all(|one| !may_change_texels(module, function, one));
        (operands.has_only(ImageOperands::NONE)
            && same(from, image)
            && same(at, coordinate)
            && are_texels_unchanged)
            .then_some((read, extract))
    };
    let ((read, extract), operand) = match read_of(first) {
        Some(found) => (found, second),
        None => (read_of(second).filter(|_| commutes)?, first),
    };
    // All components of the texel may be computed, of which one is written.
    let operand = if scalar == ty {
        operand
    } else if let Some((_, SpirvConstant::Composite(parts))) = module.constants.get(&operand) {
        *parts.first()?
    } else {
        match module.operation(&code[definition_index(operand)?]) {
            SpirvOperation::Composite(CompositeOperation::Construct { parts: [first, _, _, _] }) => *first,
            _ => return None,
        }
    };
    let SpirvOperation::Load { pointer: image, .. } = module.operation(&code[definition_index(image)?])
    else {
        return None;
    };
    Some(ImageUpdate { read, extract, operation, construct, write, image, scalar, atomic, operand })
}

/// Returns true for instructions that write memory other than local variables, order it, or call a function.
fn may_change_texels(module: &SpirvModule, function: &SpirvFunction, instruction: &SpirvInstruction) -> bool {
    match module.operation(instruction) {
        SpirvOperation::Store { pointer, .. } => !is_invocation_local(module, function, pointer),
        operation => operation.may_change_memory(),
    }
}

/// Returns the atomic form of an operation, its operands, and whether they commute.
fn atomic_form_of(module: &SpirvModule, one: &SpirvInstruction) -> Option<(Op, u32, u32, bool)> {
    let SpirvOperation::Compute { instruction, operands: [first, second] } = module.operation(one) else {
        return None;
    };
    let (atomic, commutes) = match instruction {
        Instruction::Core(Op::IAdd) => (Op::AtomicIAdd, true),
        Instruction::Core(Op::ISub) => (Op::AtomicISub, false),
        Instruction::Core(Op::BitwiseAnd) => (Op::AtomicAnd, true),
        Instruction::Core(Op::BitwiseOr) => (Op::AtomicOr, true),
        Instruction::Core(Op::BitwiseXor) => (Op::AtomicXor, true),
        Instruction::Extended(GlslStd450Op::UMin) => (Op::AtomicUMin, true),
        Instruction::Extended(GlslStd450Op::SMin) => (Op::AtomicSMin, true),
        Instruction::Extended(GlslStd450Op::UMax) => (Op::AtomicUMax, true),
        Instruction::Extended(GlslStd450Op::SMax) => (Op::AtomicSMax, true),
        _ => return None,
    };
    Some((atomic, *first, *second, commutes))
}

/// Returns true if two ids have one value in every execution that reaches an instruction.
fn is_same_value(
    module: &SpirvModule,
    function: &SpirvFunction,
    one: u32,
    other: u32,
    before: usize,
    depth: u32,
) -> bool {
    if one == other {
        return true;
    }
    let definition_index =
        |id: u32| function.code[..before].iter().rposition(|instruction| instruction.result == id);
    let (Some(first), Some(second)) = (definition_index(one), definition_index(other)) else { return false };
    let (one, other) = (&function.code[first], &function.code[second]);
    if one.op != other.op || one.ty != other.ty || depth == 0 {
        return false;
    }
    let between = &function.code[first.min(second)..first.max(second)];
    // Two loads of invocation-local memory are equal if they are in one block without a write between them.
    let unchanged =
        || between.iter().all(|one| one.op != Op::Label && !module.operation(one).may_change_memory());
    let same = |left, right| is_same_value(module, function, left, right, before, depth - 1);
    let all_same = |left: &[u32], right: &[u32]| {
        left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(*left, *right))
    };
    match (module.operation(one), module.operation(other)) {
        (
            SpirvOperation::AccessChain { base: left, element: None, indices },
            SpirvOperation::AccessChain { base: right, element: None, indices: others },
        ) => same(left, right) && all_same(indices, others),
        (SpirvOperation::Copy { value: left }, SpirvOperation::Copy { value: right })
        | (SpirvOperation::Bitcast { value: left }, SpirvOperation::Bitcast { value: right }) => {
            same(left, right)
        }
        (
            SpirvOperation::Composite(CompositeOperation::Extract { composite: left, path }),
            SpirvOperation::Composite(CompositeOperation::Extract { composite: right, path: other }),
        ) => path == other && same(left, right),
        (
            SpirvOperation::Compute { instruction, operands },
            SpirvOperation::Compute { instruction: other, operands: others },
        ) => instruction == other && all_same(operands, others),
        (SpirvOperation::Load { pointer, memory }, SpirvOperation::Load { pointer: other, .. }) => {
            memory == MemoryOperands::default()
                && is_invocation_local(module, function, pointer)
                && unchanged()
                && same(pointer, other)
        }
        _ => false,
    }
}

/// Returns true if no other invocation writes the pointee.
fn is_invocation_local(module: &SpirvModule, function: &SpirvFunction, pointer: u32) -> bool {
    let read_only = [StorageClass::Input, StorageClass::PushConstant, StorageClass::UniformConstant];
    let mut id = pointer;
    for _ in 0..MAX_DEPTH {
        if let Some(variable) = module.variables.get(&id) {
            return variable.class == StorageClass::Private || read_only.contains(&variable.class);
        }
        let Some(definition) = function.code.iter().find(|instruction| instruction.result == id) else {
            return false;
        };
        match module.operation(definition) {
            SpirvOperation::Variable { .. } => return true,
            SpirvOperation::AccessChain { base, element: None, .. } => id = base,
            _ => return false,
        }
    }
    false
}
