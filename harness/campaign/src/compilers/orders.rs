//! Checks each memory order that a test requires in the machine code.

use codegen::order::{self, OrderFinding, OrderVerdict, RequiredOrder};
use codegen::{Disassembly, FormKernel, LineSource, align};
use litmus::{AccessKind, Keyword, MemoryAccess, Test};
use results::wire::{CodegenOrder, CodegenOrderVerdict, CodegenOrdered};

use super::source::source_text;
use crate::compiling::CompilationResult;

/// Returns the orders of a kernel.
pub fn orders(
    test: &Test,
    unit: &FormKernel,
    machine: &Disassembly,
    compiled: &CompilationResult,
    compiler_target: &str,
) -> Vec<CodegenOrder> {
    let alignment = align(test, unit, machine);
    let nir = compiled.forms.iter().rev().find(|(_, text)| text.contains("impl main {"));
    let loads = atomic_loads(test, unit);
    let order = |asked: RequiredOrder| CodegenOrder {
        order: match asked.order {
            vendor::order::Order::Acquire => "acquire",
            vendor::order::Order::Release => "release",
        }
        .to_owned(),
        scope: asked.scope.keyword().to_owned(),
        first: source_text(test, asked.first),
        second: source_text(test, asked.second),
        code: ordered(order::check_order(&asked, machine, &alignment, compiler_target)),
        nir: nir
            .filter(|_| !unit.form.is_merged() && is_load(test, asked.first) && is_load(test, asked.second))
            .and_then(|(_, text)| order::check_nir(&asked, text, loads))
            .map(ordered),
    };
    order::find_required_orders(test, unit).into_iter().map(order).collect()
}

fn ordered(found: OrderFinding) -> CodegenOrdered {
    let verdict = match found.verdict {
        OrderVerdict::Kept => CodegenOrderVerdict::Kept,
        OrderVerdict::Weakened => CodegenOrderVerdict::Weakened,
        OrderVerdict::Lost => CodegenOrderVerdict::Lost,
        OrderVerdict::Unknown => CodegenOrderVerdict::Unknown,
    };
    CodegenOrdered {
        verdict,
        why: found.why,
        source: found.source.map(str::to_owned),
        is_merged: found.is_merged,
    }
}

fn atomic_loads(test: &Test, unit: &FormKernel) -> usize {
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
