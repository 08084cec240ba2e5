//! Prints instructions of the HSA dialect.

use super::{ATOMIC_OPERATIONS, OPERATIONS, ORDERS, RELATIONS, SCOPES, segment_keyword};
use crate::syntax::layout::{location_name, register_name};
use crate::syntax::words::find_word;
use crate::test::{
    Access, AccessKind, Compute, Flow, InstructionKind, Operand, RegisterId, RmwOperation, Scope, Semantics,
    StorageClass, Test, ThreadId,
};

/// Returns the text of an instruction of `thread`; `None` if the dialect cannot express it.
pub(crate) fn instruction_text(kind: &InstructionKind, test: &Test, thread: ThreadId) -> Option<String> {
    let names = test.thread(thread);
    let register = |id: RegisterId| register_name(names, id);
    let value = |operand: &Operand| match operand {
        Operand::Constant(constant) => constant.to_string(),
        Operand::Register(id) => register(*id).to_owned(),
    };
    let label = |id: crate::test::LabelId| {
        names.labels.get(usize::from(id.0)).map_or("?", |label| label.name.as_str())
    };
    Some(match kind {
        InstructionKind::Access(access) => {
            let offset = access.place.address.map_or(String::new(), |id| format!(" + {}", register(id)));
            let place = format!("[{}{offset}]", location_name(test, access.place.location));
            let class = access.place.class;
            let parts = match access.strength {
                Access::Atomic { scope, semantics } => atomic_suffix(class, semantics, scope),
                Access::Private | Access::NonPrivate | Access::Coherent { .. } => {
                    segment_keyword(class).to_owned()
                }
            };
            let plain = if access.strength.is_atomic() { "atomic_" } else { "" };
            match &access.kind {
                AccessKind::Load(destinations) => {
                    format!("{plain}ld_{parts}_u32 {}, {place}", register(destinations.first()))
                }
                AccessKind::Store(values) => {
                    format!("{plain}st_{parts}_u32 {}, {place}", value(&values.first()))
                }
                AccessKind::Rmw { destination, operation } => {
                    let (word, operand) = match operation {
                        RmwOperation::Exchange(operand) => ("exch", operand),
                        RmwOperation::Fetch(operation, operand) => {
                            (find_word(ATOMIC_OPERATIONS, *operation), operand)
                        }
                        RmwOperation::CompareExchange { value, .. } => ("cas", value),
                    };
                    let operand = value(operand);
                    match destination {
                        Some(to) => {
                            format!("atomic_{word}_{parts}_u32 {}, {place}, {operand}", register(*to))
                        }
                        None => format!("atomicnoret_{word}_{parts}_u32 {place}, {operand}"),
                    }
                }
                AccessKind::Await { destination, value: awaited } => {
                    let to = register(*destination);
                    format!("await_atomic_ld_{parts}_u32 {to}, {place}, {}", value(awaited))
                }
            }
        }
        InstructionKind::Fence { scope, semantics } => {
            format!("memfence_{}_{}", find_word(ORDERS, semantics.order), find_word(SCOPES, *scope))
        }
        InstructionKind::Compute(Compute::Move { destination, value: moved }) => {
            format!("mov_u32 {}, {}", register(*destination), value(moved))
        }
        InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => format!(
            "{}_u32 {}, {}, {}",
            find_word(OPERATIONS, *operation),
            register(*destination),
            value(left),
            value(right)
        ),
        InstructionKind::Compute(Compute::Compare { destination, relation, left, right }) => {
            let relation = find_word(RELATIONS, *relation);
            format!("cmp_{relation}_b1_u32 {}, {}, {}", register(*destination), value(left), value(right))
        }
        InstructionKind::Flow(Flow::BranchIf { condition, target }) => {
            format!("cbr_b1 {}, @{}", register(*condition), label(*target))
        }
        InstructionKind::Flow(Flow::Label(id)) => format!("@{}:", label(*id)),
        _ => return None,
    })
}

/// Returns segment, order and scope.
fn atomic_suffix(class: StorageClass, semantics: Semantics, scope: Scope) -> String {
    format!("{}_{}_{}", segment_keyword(class), find_word(ORDERS, semantics.order), find_word(SCOPES, scope))
}
