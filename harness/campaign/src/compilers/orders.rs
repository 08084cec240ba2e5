//! Checks each memory order that a test requires in the machine code.

use codegen::order::{self, RequiredOrder};
use codegen::{Disassembly, FormKernel, LineSource, align};
use litmus::{AccessKind, Keyword, MemoryAccess, Test};
use results::wire::{CodegenOrder, CodegenOrdered};

use super::line_source::source_text;
use crate::compile_worker::CompilationResult;

pub fn check_orders(
    test: &Test,
    unit: &FormKernel,
    machine: &Disassembly,
    compiled: &CompilationResult,
    compiler_target: &str,
) -> Vec<CodegenOrder> {
    let alignment = align(test, unit, machine);
    let nir = compiled.forms.iter().rev().find(|(_, text)| text.contains("impl main {"));
    let loads = count_atomic_loads(test, unit);
    let to_record = |required: RequiredOrder| {
        let found = order::check_order(&required, machine, &alignment, compiler_target);
        let nir = nir
            .filter(|_| {
                !unit.form.is_merged() && is_load(test, required.first) && is_load(test, required.second)
            })
            .and_then(|(_, text)| order::check_nir(&required, text, loads));
        CodegenOrder { nir, ..order_record(&required, found, &|source| source_text(test, source)) }
    };
    order::find_required_orders(test, unit).into_iter().map(to_record).collect()
}

/// Returns the record of an order, without NIR.
pub(super) fn order_record(
    required: &RequiredOrder,
    code: CodegenOrdered,
    name: &dyn Fn(LineSource) -> String,
) -> CodegenOrder {
    CodegenOrder {
        order: match required.order {
            vendor::order::Order::Acquire => "acquire",
            vendor::order::Order::Release => "release",
        }
        .to_owned(),
        scope: required.scope.keyword().to_owned(),
        first: name(required.first),
        second: name(required.second),
        code,
        nir: None,
    }
}

fn count_atomic_loads(test: &Test, unit: &FormKernel) -> usize {
    let instructions = unit.threads.iter().flat_map(|thread| &test.thread(*thread).instructions);
    instructions
        .filter_map(|instruction| instruction.kind.access())
        .filter(|access| is_atomic_load(access))
        .count()
}

fn is_atomic_load(access: &MemoryAccess) -> bool {
    matches!(access.kind, AccessKind::Load(_)) && matches!(access.strength, litmus::Access::Atomic { .. })
}

fn is_load(test: &Test, source: LineSource) -> bool {
    let LineSource::Instruction(thread, index) = source else { return false };
    let instruction = test.thread(thread).instructions.get(index);
    instruction.and_then(|instruction| instruction.kind.access()).is_some_and(is_atomic_load)
}
