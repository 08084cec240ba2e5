//! Validity rules that a validator may miss, or would report later than the emitter should.
//!
//! spirv-val 2023.1 accepts relaxed atomics with storage classes, ordered atomics without any,
//! compare-exchanges with stronger order on failure than on success, and 8-bit atomics. Drivers have misread
//! such modules, so no kernel may contain one.

mod declarations;
mod fault;

use std::collections::{BTreeMap, BTreeSet};

use litmus::{Scope, Semantics};
use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{
    Capability, Decoration, ImageFormat, ImageOperands, MemoryAccess, MemorySemantics, Op, StorageClass, Word,
};

use crate::lift::is_rmw;
use crate::reader::{Reader, operand_ids, parse_scope, parse_semantics};
use shaders::ModuleError;
use shaders::rules::SemanticsRule;
use shaders::semantics::{self as rules, SemanticsInstruction};

pub use fault::{ModuleFault, Violation};

/// Returns the rules that a module breaks, in the order of its instructions.
///
/// # Errors
/// [`ModuleError`] if the words are not a module.
pub fn check(words: &[u32]) -> Result<Vec<Violation>, ModuleError> {
    let reader = Reader::new(words)?;
    let checker = Checker::new(&reader);
    let mut violations = Vec::new();
    for (number, instruction) in reader.module.all_inst_iter().enumerate() {
        let mut report = |fault| {
            violations.push(Violation { instruction: instruction.class.opcode, number, fault });
        };
        checker.check_declaration(instruction, &mut report);
        checker.check_instruction(instruction, &mut report);
    }
    Ok(violations)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NumericType {
    Integer(u32),
    Float(u32),
}

struct Checker<'a> {
    reader: &'a Reader,
    capabilities: BTreeSet<Capability>,
    is_vulkan_model: bool,
    numeric_types: BTreeMap<Word, NumericType>,
    /// The component type of each vector type.
    component_types: BTreeMap<Word, Word>,
    value_types: BTreeMap<Word, Word>,
    /// Control barriers that only one thread reaches, by their index among all barriers.
    divergent_barriers: BTreeSet<usize>,
    /// Halves of split barriers that do not alternate between arrival and wait, by the same index.
    non_alternating_barriers: BTreeSet<usize>,
    barrier_count: std::cell::Cell<usize>,
}

impl<'a> Checker<'a> {
    fn new(reader: &'a Reader) -> Checker<'a> {
        let capability = |instruction: &Instruction| match instruction.operands.first() {
            Some(Operand::Capability(capability)) => Some(*capability),
            _ => None,
        };
        let (mut numbers, mut vectors) = (BTreeMap::new(), BTreeMap::new());
        let mut types = BTreeMap::new();
        for instruction in reader.module.all_inst_iter() {
            let width = match instruction.operands.first() {
                Some(Operand::LiteralBit32(width)) => *width,
                _ => 0,
            };
            match (instruction.class.opcode, instruction.result_id) {
                (Op::TypeInt, Some(id)) => {
                    numbers.insert(id, NumericType::Integer(width));
                }
                (Op::TypeFloat, Some(id)) => {
                    numbers.insert(id, NumericType::Float(width));
                }
                (Op::TypeVector, Some(id)) => {
                    vectors.extend(operand_ids(instruction).first().map(|component| (id, *component)));
                }
                _ => {}
            }
            if let (Some(id), Some(ty)) = (instruction.result_id, instruction.result_type) {
                types.insert(id, ty);
            }
        }
        Checker {
            reader,
            capabilities: reader.module.capabilities.iter().filter_map(capability).collect(),
            is_vulkan_model: reader.has_vulkan_model(),
            numeric_types: numbers,
            component_types: vectors,
            value_types: types,
            divergent_barriers: declarations::divergent_barriers(reader),
            non_alternating_barriers: declarations::non_alternating_barriers(reader),
            barrier_count: std::cell::Cell::new(0),
        }
    }

    /// Returns the numeric type of a scalar type, or of a vector type's components.
    fn numeric_type(&self, ty: Word) -> Option<&NumericType> {
        self.numeric_types.get(self.component_types.get(&ty).unwrap_or(&ty))
    }

    fn has_capability(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    fn check_instruction(&self, instruction: &Instruction, mut report: impl FnMut(ModuleFault)) {
        let op = instruction.class.opcode;
        let ids = operand_ids(instruction);
        let id = |index: usize| ids.get(index).copied().unwrap_or_default();
        match op {
            Op::Load | Op::Store => self.check_plain_access(instruction, id(0), &mut report),
            Op::ImageRead | Op::ImageWrite => self.check_texel_access(instruction, &mut report),
            Op::ImageTexelPointer => self.check_texel_pointer(id(0), &mut report),
            Op::AtomicLoad => self.check_ordering(SemanticsInstruction::Load, id(1), id(2), &mut report),
            Op::AtomicStore => self.check_ordering(SemanticsInstruction::Store, id(1), id(2), &mut report),
            Op::MemoryBarrier => {
                self.check_ordering(SemanticsInstruction::MemoryBarrier, id(0), id(1), &mut report)
            }
            Op::ControlBarrier | Op::ControlBarrierArriveINTEL | Op::ControlBarrierWaitINTEL => {
                match self.check_scope(id(0), &mut report) {
                    None | Some(Scope::Workgroup | Scope::Subgroup) => {}
                    Some(other) => report(ModuleFault::ExecutionScope(other)),
                }
                let operation = match op {
                    Op::ControlBarrierArriveINTEL => SemanticsInstruction::Arrival,
                    Op::ControlBarrierWaitINTEL => SemanticsInstruction::Wait,
                    _ => SemanticsInstruction::ControlBarrier,
                };
                if operation != SemanticsInstruction::ControlBarrier
                    && !self.has_capability(Capability::SplitBarrierINTEL)
                {
                    report(ModuleFault::MissingCapability(Capability::SplitBarrierINTEL));
                }
                self.check_ordering(operation, id(1), id(2), &mut report);
                let number = self.barrier_count.get();
                self.barrier_count.set(number + 1);
                if self.divergent_barriers.contains(&number) {
                    report(ModuleFault::DivergentBarrier);
                }
                if self.non_alternating_barriers.contains(&number) {
                    report(ModuleFault::SplitAlternation);
                }
            }
            Op::AtomicCompareExchange => {
                let before = (self.check_scope(id(1), &mut |_| {}), self.check_semantics(id(2), &mut |_| {}));
                self.check_ordering(SemanticsInstruction::Rmw, id(1), id(2), &mut report);
                if let (Some(scope), Some(equal)) = before
                    && let Some(unequal) = self.check_semantics(id(3), &mut report)
                    && let Err(rule) = rules::check_unequal(scope, equal, unequal)
                {
                    report(rule.into());
                }
                let volatile =
                    |id| self.reader.constant(id).map(|word| word & MemorySemantics::VOLATILE.bits());
                if volatile(id(2)) != volatile(id(3)) {
                    report(ModuleFault::UnequalVolatile);
                }
            }
            _ if is_rmw(op) => self.check_ordering(SemanticsInstruction::Rmw, id(1), id(2), &mut report),
            _ => {}
        }
        if matches!(op, Op::AtomicLoad | Op::AtomicStore) || is_rmw(op) {
            self.check_atomic(instruction, id(0), id(3), &mut report);
        }
    }

    /// Checks type and memory of an atomic.
    fn check_atomic(
        &self,
        instruction: &Instruction,
        pointer: Word,
        stored: Word,
        report: &mut impl FnMut(ModuleFault),
    ) {
        let op = instruction.class.opcode;
        let ty = if op == Op::AtomicStore {
            self.value_types.get(&stored).copied()
        } else {
            instruction.result_type
        };
        let float_op = |add, min_max| match op {
            Op::AtomicFAddEXT => Some(add),
            Op::AtomicFMinEXT | Op::AtomicFMaxEXT => Some(min_max),
            _ => None,
        };
        match ty.and_then(|ty| self.numeric_types.get(&ty)) {
            Some(NumericType::Integer(32)) => {}
            Some(NumericType::Integer(64)) if self.has_capability(Capability::Int64Atomics) => {}
            Some(NumericType::Float(width @ (32 | 64))) => {
                let needed = if *width == 32 {
                    float_op(Capability::AtomicFloat32AddEXT, Capability::AtomicFloat32MinMaxEXT)
                } else {
                    float_op(Capability::AtomicFloat64AddEXT, Capability::AtomicFloat64MinMaxEXT)
                };
                if needed.is_some_and(|capability| !self.has_capability(capability)) {
                    report(ModuleFault::FloatAtomic);
                }
                if needed.is_none() && !matches!(op, Op::AtomicLoad | Op::AtomicStore | Op::AtomicExchange) {
                    report(ModuleFault::AtomicType);
                }
            }
            _ => report(ModuleFault::AtomicType),
        }
        let reachable = [
            StorageClass::Uniform,
            StorageClass::Workgroup,
            StorageClass::Image,
            StorageClass::StorageBuffer,
            StorageClass::PhysicalStorageBuffer,
        ];
        if !self.storage_class(pointer).is_some_and(|class| reachable.contains(&class)) {
            report(ModuleFault::AtomicStorageClass);
        }
    }

    fn storage_class(&self, pointer: Word) -> Option<StorageClass> {
        let ty = self.reader.definition(*self.value_types.get(&pointer)?)?;
        match ty.operands.first() {
            Some(Operand::StorageClass(class)) => Some(*class),
            _ => None,
        }
    }

    /// Checks the memory operands of a plain access.
    fn check_plain_access(
        &self,
        instruction: &Instruction,
        pointer: Word,
        report: &mut impl FnMut(ModuleFault),
    ) {
        let store = instruction.class.opcode == Op::Store;
        let class = self.storage_class(pointer);
        let (mut bits, mut alignment) = (MemoryAccess::NONE, None);
        for operand in &instruction.operands {
            match operand {
                Operand::MemoryAccess(found) => bits = *found,
                Operand::LiteralBit32(stated) => alignment = Some(*stated),
                Operand::IdScope(scope) => drop(self.check_scope(*scope, report)),
                _ => {}
            }
        }
        let coherent =
            bits.intersects(MemoryAccess::MAKE_POINTER_AVAILABLE | MemoryAccess::MAKE_POINTER_VISIBLE);
        let non_private = bits.contains(MemoryAccess::NON_PRIVATE_POINTER);
        if (coherent || non_private) && !self.is_vulkan_model {
            report(ModuleFault::OperandsWithoutModel);
        }
        if coherent && !non_private {
            report(ModuleFault::PrivateAvailability);
        }
        if !store && bits.contains(MemoryAccess::MAKE_POINTER_AVAILABLE) {
            report(ModuleFault::AvailabilityOnLoad);
        }
        if store && bits.contains(MemoryAccess::MAKE_POINTER_VISIBLE) {
            report(ModuleFault::VisibilityOnStore);
        }
        let shared = [
            StorageClass::Uniform,
            StorageClass::Workgroup,
            StorageClass::StorageBuffer,
            StorageClass::PhysicalStorageBuffer,
        ];
        if non_private && !class.is_some_and(|class| shared.contains(&class)) {
            report(ModuleFault::NonPrivateStorageClass);
        }
        if class == Some(StorageClass::PhysicalStorageBuffer) {
            let value = if store {
                operand_ids(instruction).get(1).and_then(|id| self.value_types.get(id)).copied()
            } else {
                instruction.result_type
            };
            let bytes = match value.and_then(|ty| self.numeric_type(ty)) {
                Some(NumericType::Integer(width) | NumericType::Float(width)) => width / 8,
                None => 0,
            };
            let fits =
                alignment.is_some_and(|declared| bytes > 0 && declared > 0 && declared.is_multiple_of(bytes));
            if !(bits.contains(MemoryAccess::ALIGNED) && fits) {
                report(ModuleFault::Alignment);
            }
        }
    }

    /// Checks the image operands of a plain texel access.
    fn check_texel_access(&self, instruction: &Instruction, report: &mut impl FnMut(ModuleFault)) {
        let write = instruction.class.opcode == Op::ImageWrite;
        let mut bits = ImageOperands::NONE;
        for operand in &instruction.operands {
            match operand {
                Operand::ImageOperands(found) => bits = *found,
                Operand::IdScope(scope) => drop(self.check_scope(*scope, report)),
                _ => {}
            }
        }
        let coherent =
            bits.intersects(ImageOperands::MAKE_TEXEL_AVAILABLE | ImageOperands::MAKE_TEXEL_VISIBLE);
        let non_private = bits.contains(ImageOperands::NON_PRIVATE_TEXEL);
        if (coherent || non_private) && !self.is_vulkan_model {
            report(ModuleFault::OperandsWithoutModel);
        }
        if coherent && !non_private {
            report(ModuleFault::PrivateAvailability);
        }
        if !write && bits.contains(ImageOperands::MAKE_TEXEL_AVAILABLE) {
            report(ModuleFault::AvailabilityOnLoad);
        }
        if write && bits.contains(ImageOperands::MAKE_TEXEL_VISIBLE) {
            report(ModuleFault::VisibilityOnStore);
        }
    }

    /// Checks the format of the image of an atomic.
    fn check_texel_pointer(&self, image: Word, report: &mut impl FnMut(ModuleFault)) {
        let pointer = self.value_types.get(&image).and_then(|ty| self.reader.definition(*ty));
        let pointee = pointer.and_then(|pointer| operand_ids(pointer).first().copied());
        let format = pointee.and_then(|ty| self.reader.definition(ty)).and_then(|ty| {
            ty.operands.iter().find_map(|operand| match operand {
                Operand::ImageFormat(format) => Some(*format),
                _ => None,
            })
        });
        if !matches!(format, Some(ImageFormat::R32ui | ImageFormat::R32i | ImageFormat::R32f)) {
            report(ModuleFault::ImageFormat);
        }
    }

    fn check_ordering(
        &self,
        operation: SemanticsInstruction,
        scope: Word,
        semantics: Word,
        report: &mut impl FnMut(ModuleFault),
    ) {
        let barrier = match operation {
            SemanticsInstruction::MemoryBarrier
            | SemanticsInstruction::ControlBarrier
            | SemanticsInstruction::Arrival
            | SemanticsInstruction::Wait => true,
            SemanticsInstruction::Load | SemanticsInstruction::Store | SemanticsInstruction::Rmw => false,
        };
        if let Some(word) = self.reader.constant(semantics) {
            let model_only = MemorySemantics::MAKE_AVAILABLE
                | MemorySemantics::MAKE_VISIBLE
                | MemorySemantics::OUTPUT_MEMORY
                | MemorySemantics::VOLATILE;
            if !self.is_vulkan_model && word & model_only.bits() != 0 {
                report(ModuleFault::SemanticsWithoutModel);
            }
            if barrier && word & MemorySemantics::VOLATILE.bits() != 0 {
                report(ModuleFault::VolatileBarrier);
            }
        }
        let scope = self.check_scope(scope, report);
        if let (Some(scope), Some(semantics)) = (scope, self.check_semantics(semantics, report))
            && let Err(rule) = rules::check(operation, scope, semantics)
        {
            report(rule.into());
        }
    }

    fn check_scope(&self, id: Word, report: &mut impl FnMut(ModuleFault)) -> Option<Scope> {
        let Some(word) = self.reader.constant(id) else {
            report(ModuleFault::NotConstant);
            return None;
        };
        match parse_scope(word) {
            None | Some(Scope::CrossDevice) => {
                report(ModuleFault::Scope(word));
                return None;
            }
            Some(Scope::Device)
                if self.is_vulkan_model && !self.has_capability(Capability::VulkanMemoryModelDeviceScope) =>
            {
                report(ModuleFault::DeviceScope);
            }
            Some(Scope::QueueFamily) if !self.is_vulkan_model => report(ModuleFault::QueueFamilyScope),
            Some(Scope::Subgroup) if !self.has_capability(Capability::GroupNonUniform) => {
                report(ModuleFault::SubgroupScope)
            }
            Some(_) => {}
        }
        parse_scope(word)
    }

    fn check_semantics(&self, id: Word, report: &mut impl FnMut(ModuleFault)) -> Option<Semantics> {
        let Some(word) = self.reader.constant(id) else {
            report(ModuleFault::NotConstant);
            return None;
        };
        let semantics = parse_semantics(word & !MemorySemantics::VOLATILE.bits());
        if semantics.is_none() {
            report(SemanticsRule::Unknown.into());
        }
        semantics
    }

    fn is_decorated(&self, id: Word, decoration: Decoration) -> bool {
        self.reader.is_decorated(id, decoration)
    }
}
