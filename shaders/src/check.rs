//! Rules of a valid module that a validator may miss: scopes, memory semantics and atomics under the Vulkan memory model.
//!
//! spirv-val 2023.1 accepts relaxed atomics with storage classes, ordered atomics without any, and compare-exchanges whose
//! failure is ordered more strongly than their success. Drivers have misread such modules, so no kernel may hold one.

use std::collections::BTreeMap;

use litmus::{Scope, Semantics};
use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{Capability, Op, Word};

use crate::ModuleError;
use crate::lift::is_rmw;
use crate::reader::{Reader, ids, scope, semantics};
use crate::rules::SemanticsRule;
use crate::semantics::{self as rules, Operation};

/// A rule that a module breaks, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{instruction:?} number {number}: {fault}")]
pub struct Violation {
    /// The instruction.
    pub instruction: Op,
    /// Its number among all instructions of the module, from 0.
    pub number: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Its memory semantics break a rule.
    #[error(transparent)]
    Semantics(#[from] SemanticsRule),
    /// A scope or semantics that is not a constant: with the Shader capability it must be one.
    #[error("scope or semantics that is not a constant")]
    NotConstant,
    /// A scope that no shader can name (VUID-StandaloneSpirv-None-04638), or no scope at all.
    #[error("scope {0}")]
    Scope(u32),
    /// Device scope without the capability VulkanMemoryModelDeviceScope.
    #[error("Device scope without its capability")]
    DeviceScope,
    /// Subgroup scope without GroupNonUniform (VUID-RuntimeSpirv-SubgroupVoteKHR-07951).
    #[error("Subgroup scope without the capability GroupNonUniform")]
    SubgroupScope,
    /// An execution scope other than Workgroup and Subgroup (VUID-StandaloneSpirv-None-04636).
    #[error("execution scope {0:?}")]
    ExecutionScope(Scope),
    /// An atomic whose type is not a 32-bit integer, or a 64-bit one with the capability Int64Atomics.
    #[error("atomic on this type")]
    AtomicType,
}

/// The rules that a module breaks, in the order of its instructions.
///
/// # Errors
/// [`ModuleError`] where the words are no module.
pub fn check(words: &[u32]) -> Result<Vec<Violation>, ModuleError> {
    let reader = Reader::new(words)?;
    let checker = Checker::new(&reader);
    let mut violations = Vec::new();
    for (number, instruction) in reader.module.all_inst_iter().enumerate() {
        checker.instruction(instruction, |fault| {
            violations.push(Violation { instruction: instruction.class.opcode, number, fault });
        });
    }
    Ok(violations)
}

struct Checker<'a> {
    reader: &'a Reader,
    device_scope: bool,
    group_non_uniform: bool,
    /// Widths of integer types that atomics may have.
    atomic_widths: &'static [u32],
    integers: BTreeMap<Word, u32>,
    /// The type of each value.
    types: BTreeMap<Word, Word>,
}

impl<'a> Checker<'a> {
    fn new(reader: &'a Reader) -> Checker<'a> {
        let has = |capability| {
            reader
                .module
                .capabilities
                .iter()
                .any(|i| i.operands.first() == Some(&Operand::Capability(capability)))
        };
        let mut integers = BTreeMap::new();
        let mut types = BTreeMap::new();
        for instruction in reader.module.all_inst_iter() {
            if let (Op::TypeInt, Some(id), [Operand::LiteralBit32(width), ..]) =
                (instruction.class.opcode, instruction.result_id, &instruction.operands[..])
            {
                integers.insert(id, *width);
            }
            if let (Some(id), Some(ty)) = (instruction.result_id, instruction.result_type) {
                types.insert(id, ty);
            }
        }
        Checker {
            reader,
            device_scope: has(Capability::VulkanMemoryModelDeviceScope),
            group_non_uniform: has(Capability::GroupNonUniform),
            atomic_widths: if has(Capability::Int64Atomics) { &[32, 64] } else { &[32] },
            integers,
            types,
        }
    }

    fn instruction(&self, instruction: &Instruction, mut report: impl FnMut(Fault)) {
        let op = instruction.class.opcode;
        let ids = ids(instruction);
        let id = |index: usize| ids.get(index).copied().unwrap_or_default();
        match op {
            Op::Load | Op::Store => {
                for operand in &instruction.operands {
                    if let Operand::IdScope(scope) = operand {
                        self.scope(*scope, &mut report);
                    }
                }
            }
            Op::AtomicLoad => self.ordered(Operation::Load, id(1), id(2), &mut report),
            Op::AtomicStore => self.ordered(Operation::Store, id(1), id(2), &mut report),
            Op::MemoryBarrier => self.ordered(Operation::MemoryBarrier, id(0), id(1), &mut report),
            Op::ControlBarrier => {
                match self.scope(id(0), &mut report) {
                    None | Some(Scope::Workgroup | Scope::Subgroup) => {}
                    Some(other) => report(Fault::ExecutionScope(other)),
                }
                self.ordered(Operation::ControlBarrier, id(1), id(2), &mut report);
            }
            Op::AtomicCompareExchange => {
                let before = (self.scope(id(1), &mut |_| {}), self.semantics(id(2), &mut |_| {}));
                self.ordered(Operation::Rmw, id(1), id(2), &mut report);
                if let (Some(scope), Some(equal)) = before
                    && let Some(unequal) = self.semantics(id(3), &mut report)
                    && let Err(rule) = rules::check_unequal(scope, equal, unequal)
                {
                    report(rule.into());
                }
            }
            _ if is_rmw(op) => self.ordered(Operation::Rmw, id(1), id(2), &mut report),
            _ => {}
        }
        let value = match op {
            Op::AtomicStore => self.types.get(&id(3)).copied(),
            _ if op == Op::AtomicLoad || is_rmw(op) => instruction.result_type,
            _ => return,
        };
        let width = value.and_then(|ty| self.integers.get(&ty)).copied().unwrap_or(0);
        if !self.atomic_widths.contains(&width) {
            report(Fault::AtomicType);
        }
    }

    fn ordered(&self, operation: Operation, scope: Word, semantics: Word, report: &mut impl FnMut(Fault)) {
        let scope = self.scope(scope, report);
        if let (Some(scope), Some(semantics)) = (scope, self.semantics(semantics, report))
            && let Err(rule) = rules::check(operation, scope, semantics)
        {
            report(rule.into());
        }
    }

    fn scope(&self, id: Word, report: &mut impl FnMut(Fault)) -> Option<Scope> {
        let Some(word) = self.reader.constant(id) else {
            report(Fault::NotConstant);
            return None;
        };
        match scope(word) {
            None | Some(Scope::CrossDevice) => {
                report(Fault::Scope(word));
                return None;
            }
            Some(Scope::Device) if !self.device_scope => report(Fault::DeviceScope),
            Some(Scope::Subgroup) if !self.group_non_uniform => report(Fault::SubgroupScope),
            Some(_) => {}
        }
        scope(word)
    }

    fn semantics(&self, id: Word, report: &mut impl FnMut(Fault)) -> Option<Semantics> {
        let Some(word) = self.reader.constant(id) else {
            report(Fault::NotConstant);
            return None;
        };
        let semantics = semantics(word);
        if semantics.is_none() {
            report(SemanticsRule::Unknown.into());
        }
        semantics
    }
}
