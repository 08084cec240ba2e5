//! Prints a test in the HSA dialect, with aligned columns.

use super::{ATOMIC_OPERATIONS, OPERATIONS, ORDERS, RELATIONS, SCOPES, segment_keyword};
use crate::syntax::layout::{location_name, push_aligned_rows, push_line, register_name};
use crate::syntax::words::find_word;
use crate::test::{
    Access, AccessKind, Compute, Flow, InstructionKind, LocationInit, Operand, Reference, RegisterId,
    RegisterInit, RmwOperation, Scope, Semantics, StorageClass, Test, ThreadId, ThreadPlace,
};

/// Prints the part between the header and the question.
pub(in crate::syntax) fn print_body(out: &mut String, test: &Test) {
    out.push_str("{\n");
    for location in &test.locations {
        let segment = match location.reference {
            Some(Reference::Workgroup) => "group ",
            _ => "",
        };
        let init = match location.init {
            LocationInit::Constant(constant) => constant,
            // The dialect only declares numbers.
            LocationInit::Components(_)
            | LocationInit::CopyOf(_)
            | LocationInit::AddressOf(_)
            | LocationInit::AliasOf(_)
            | LocationInit::Undefined => 0,
        };
        push_line(out, &format!("{segment}{} = {init};", location.name));
    }
    for thread in &test.threads {
        for register in thread.registers.iter().filter(|register| register.declared) {
            let init = match register.init {
                RegisterInit::Constant(constant) => constant,
                RegisterInit::ValueOf(_) | RegisterInit::AddressOf(_) => 0,
            };
            push_line(out, &format!("P{}:{} = {init};", thread.number, register.name));
        }
    }
    out.push_str("}\n");
    if test.attached_sync().next().is_some() {
        out.push_str("{\n");
        for pair in test.attached_sync() {
            let number = |point: crate::test::SyncPoint| test.thread(point.thread).number;
            push_line(out, &format!("pkt P{} P{};", number(pair.from), number(pair.to)));
        }
        out.push_str("}\n");
    }
    let columns = test.threads.iter().enumerate().map(|(index, thread)| {
        let mut cells = Vec::with_capacity(thread.instructions.len() + 1);
        cells.push(match thread.place {
            ThreadPlace::Host => format!("P{}", thread.number),
            ThreadPlace::Device(place) => format!(
                "P{}@wave {}, wg {}, agent {}",
                thread.number, place.subgroup, place.workgroup, place.queue_family
            ),
        });
        let id = ThreadId(index as u16);
        cells.extend(thread.instructions.iter().map(|instruction| instruction.kind.to_text(test, id)));
        cells
    });
    push_aligned_rows(out, &columns.collect::<Vec<_>>());
}

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
