//! Plain read-modify-writes: a load, one operation on its value, and a store through the same pointer.
//!
//! Only updates within one block are found, and only if nothing between load and store may change memory or
//! synchronize. Two pointers are the same if the same operations on the same values compute them.

use rspirv::spirv::{GlslStd450Op, ImageOperands, Op, StorageClass};
use spirv_reader::{
    SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule, SpirvType, opcode::is_atomic,
};

/// Upper bound on the depth of compared expressions.
const MAX_DEPTH: u32 = 8;

/// A load, an operation and a store of one function that an atomic instruction can replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainUpdate {
    /// Index of the load.
    pub load: usize,
    /// Index of the operation.
    pub operation: usize,
    /// Index of the store.
    pub store: usize,
    /// The atomic instruction.
    pub atomic: Op,
    /// The id of the other operand.
    pub operand: u32,
}

/// Returns the updates of a function in the order of their stores.
pub(crate) fn plain_updates(module: &SpirvModule, function: &SpirvFunction) -> Vec<PlainUpdate> {
    let stores = function.code.iter().enumerate().filter(|(_, one)| one.op == Op::Store);
    stores.filter_map(|(store, _)| update_of_store(module, function, store)).collect()
}

/// Returns the update that ends in a store.
fn update_of_store(module: &SpirvModule, function: &SpirvFunction, store: usize) -> Option<PlainUpdate> {
    let code = &function.code;
    let [pointer, value, ..] = module.operands_of(&code[store]) else { return None };
    // Only within the block of the store: load, operation and store are executed together.
    let start = code[..store].iter().rposition(|one| one.op == Op::Label)?;
    let made = |id: u32| (start..store).rev().find(|index| code[*index].result == id);
    let operation = made(*value)?;
    let is_integer =
        matches!(module.types.get(&code[operation].ty), Some(SpirvType::Integer { bits: 32, .. }));
    if !is_integer {
        return None;
    }
    let (atomic, first, second, commutes) = atomic_of(module, &code[operation])?;
    let load_of = |id: u32| {
        let load = made(id).filter(|index| code[*index].op == Op::Load)?;
        let from = *module.operands_of(&code[load]).first()?;
        let same = is_same_value(module, function, from, *pointer, store, MAX_DEPTH);
        // Between load and store, nothing else may write the location or order the two.
        let quiet = code[load + 1..store].iter().all(|one| !may_change_memory(one.op));
        (same && quiet).then_some(load)
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
pub(crate) struct ImageUpdate {
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
    /// The atomic instruction.
    pub atomic: Op,
    /// The id of the other operand.
    pub operand: u32,
}

/// Returns the updates of images with one 32-bit integer component, in the order of their writes.
pub(crate) fn image_updates(module: &SpirvModule, function: &SpirvFunction) -> Vec<ImageUpdate> {
    let writes = function.code.iter().enumerate().filter(|(_, one)| one.op == Op::ImageWrite);
    writes.filter_map(|(write, _)| update_of_image(module, function, write)).collect()
}

/// Returns the update that ends in a write of an image.
fn update_of_image(module: &SpirvModule, function: &SpirvFunction, write: usize) -> Option<ImageUpdate> {
    let code = &function.code;
    let [image, coordinate, texel, rest @ ..] = module.operands_of(&code[write]) else { return None };
    if !addresses_one_texel(rest) {
        return None;
    }
    // Within one block, the write executes whenever the read does.
    let start = code[..write].iter().rposition(|one| one.op == Op::Label)?;
    let made = |id: u32| (start..write).rev().find(|index| code[*index].result == id);
    let operands = |index: usize| module.operands_of(&code[index]);
    let last = made(*texel)?;
    let construct = (code[last].op == Op::CompositeConstruct).then_some(last);
    let operation = match construct {
        Some(construct) => made(*operands(construct).first()?)?,
        None => last,
    };
    let ty = code[operation].ty;
    let scalar = match module.types.get(&ty) {
        Some(SpirvType::Vector { element, .. }) => *element,
        _ => ty,
    };
    if !matches!(module.types.get(&scalar), Some(SpirvType::Integer { bits: 32, .. })) {
        return None;
    }
    let (atomic, first, second, commutes) = atomic_of(module, &code[operation])?;
    let read_of = |id: u32| {
        let value = made(id)?;
        let extract =
            (code[value].op == Op::CompositeExtract && operands(value).get(1) == Some(&0)).then_some(value);
        let read = match extract {
            Some(extract) => made(*operands(extract).first()?)?,
            None => value,
        };
        let [from, at, rest @ ..] = operands(read) else { return None };
        let same = |one, other| is_same_value(module, function, one, other, write, MAX_DEPTH);
        let quiet = code[read + 1..write].iter().all(|one| !may_change_texels(module, function, one));
        (code[read].op == Op::ImageRead
            && addresses_one_texel(rest)
            && same(*from, *image)
            && same(*at, *coordinate)
            && quiet)
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
        let whole = made(operand).filter(|index| code[*index].op == Op::CompositeConstruct)?;
        let [first, _, _, _] = operands(whole) else { return None };
        *first
    };
    let image = *operands(made(*image)?).first()?;
    Some(ImageUpdate { read, extract, operation, construct, write, image, scalar, atomic, operand })
}

/// Returns true unless image operands choose a level, a sample or an offset.
fn addresses_one_texel(operands: &[u32]) -> bool {
    let other = ImageOperands::MAKE_TEXEL_AVAILABLE
        | ImageOperands::MAKE_TEXEL_VISIBLE
        | ImageOperands::NON_PRIVATE_TEXEL
        | ImageOperands::VOLATILE_TEXEL
        | ImageOperands::SIGN_EXTEND
        | ImageOperands::ZERO_EXTEND;
    operands.first().is_none_or(|mask| mask & !other.bits() == 0)
}

/// Returns true for instructions that write memory other than local variables, order it, or call a function.
fn may_change_texels(module: &SpirvModule, function: &SpirvFunction, one: &SpirvInstruction) -> bool {
    let is_local = || {
        let pointer = module.operands_of(one).first();
        pointer.is_some_and(|pointer| is_own_memory(module, function, *pointer))
    };
    may_change_memory(one.op) && !(one.op == Op::Store && is_local())
}

/// Returns the atomic form of an operation, its operands, and whether they commute.
fn atomic_of(module: &SpirvModule, one: &SpirvInstruction) -> Option<(Op, u32, u32, bool)> {
    let (atomic, commutes) = match one.op {
        Op::IAdd => (Op::AtomicIAdd, true),
        Op::ISub => (Op::AtomicISub, false),
        Op::BitwiseAnd => (Op::AtomicAnd, true),
        Op::BitwiseOr => (Op::AtomicOr, true),
        Op::BitwiseXor => (Op::AtomicXor, true),
        Op::ExtInst => {
            let [_, number, first, second] = module.operands_of(one) else { return None };
            let atomic = match GlslStd450Op::from_u32(*number)? {
                GlslStd450Op::UMin => Op::AtomicUMin,
                GlslStd450Op::SMin => Op::AtomicSMin,
                GlslStd450Op::UMax => Op::AtomicUMax,
                GlslStd450Op::SMax => Op::AtomicSMax,
                _ => return None,
            };
            return Some((atomic, *first, *second, true));
        }
        _ => return None,
    };
    let [first, second] = module.operands_of(one) else { return None };
    Some((atomic, *first, *second, commutes))
}

/// Returns true for instructions that write memory, order it, or call a function.
fn may_change_memory(op: Op) -> bool {
    matches!(
        op,
        Op::Store
            | Op::CopyMemory
            | Op::CopyMemorySized
            | Op::ImageWrite
            | Op::FunctionCall
            | Op::ControlBarrier
            | Op::MemoryBarrier
            | Op::ControlBarrierArriveINTEL
            | Op::ControlBarrierWaitINTEL
    ) || is_atomic(op)
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
    let made = |id: u32| function.code[..before].iter().rposition(|instruction| instruction.result == id);
    let (Some(first), Some(second)) = (made(one), made(other)) else { return false };
    let (one, other) = (&function.code[first], &function.code[second]);
    let (left, right) = (module.operands_of(one), module.operands_of(other));
    if one.op != other.op || one.ty != other.ty || left.len() != right.len() || depth == 0 {
        return false;
    }
    let computes = matches!(
        one.op,
        Op::AccessChain
            | Op::InBoundsAccessChain
            | Op::CopyObject
            | Op::Bitcast
            | Op::IAdd
            | Op::ISub
            | Op::IMul
            | Op::UDiv
            | Op::UMod
            | Op::BitwiseAnd
            | Op::BitwiseOr
            | Op::ShiftLeftLogical
            | Op::ShiftRightLogical
    );
    let extracts = one.op == Op::CompositeExtract && left.get(1..) == right.get(1..);
    let between = &function.code[first.min(second)..first.max(second)];
    // Two loads of own memory are equal if they are in one block without a write between them.
    let unchanged = || between.iter().all(|one| one.op != Op::Label && !may_change_memory(one.op));
    let loads =
        one.op == Op::Load && left.len() == 1 && is_own_memory(module, function, left[0]) && unchanged();
    let compared = if computes { left.len() } else { usize::from(extracts || loads) };
    compared != 0
        && left
            .iter()
            .zip(right)
            .take(compared)
            .all(|(one, other)| is_same_value(module, function, *one, *other, before, depth - 1))
}

/// Returns true if no other invocation writes what a pointer points to.
fn is_own_memory(module: &SpirvModule, function: &SpirvFunction, pointer: u32) -> bool {
    let read_only = [StorageClass::Input, StorageClass::PushConstant, StorageClass::UniformConstant];
    let mut id = pointer;
    for _ in 0..MAX_DEPTH {
        if let Some(variable) = module.variables.get(&id) {
            return variable.class == StorageClass::Private || read_only.contains(&variable.class);
        }
        let Some(made) = function.code.iter().find(|one| one.result == id) else { return false };
        match made.op {
            Op::Variable => return true,
            Op::AccessChain | Op::InBoundsAccessChain => {}
            _ => return false,
        }
        let Some(base) = module.operands_of(made).first() else { return false };
        id = *base;
    }
    false
}
