//! Reduces a test that crashes a compiler, by delta debugging over its weakenings.

use codegen::{Form, form_kernels, shrink};
use litmus::Test;
use model::synthesis::weaken_test;

use super::engine::{CompilerEngine, CrashKind};
use super::targets::CompilerTarget;
use super::{CodegenRequest, CompiledTest};
use crate::compile_worker::KernelToCompile;

/// Limits on the compiler calls for one test: a hang costs the full time limit on each try.
const MAX_TRIES: u32 = 200;
const MAX_HANG_TRIES: u32 = 8;

/// Returns the text of the smallest test whose kernels of `form` still crash the compiler of `target`, or still do not end in
/// time: on a busy machine, any compiler may not.
pub fn reduce_test(
    engine: &CompilerEngine,
    item: &CompiledTest,
    form: Form,
    target: &CompilerTarget,
    request: &CodegenRequest,
) -> String {
    let sizes = target.kernel_sizes(request.lanes);
    let crash_kind = |test: &Test| {
        // With only one workgroup left, the test cannot be split, and its kernel is the merged one.
        let result = form_kernels(test, form, item.variant.shader, &sizes)
            .or_else(|_| form_kernels(test, Form::Merged, form.compile_variant(item.variant.shader), &sizes));
        let kernels: Vec<KernelToCompile> =
            result.ok()?.iter().map(|unit| KernelToCompile::from(&unit.kernel)).collect();
        engine.crash_kind(target, &kernels)
    };
    let first = crash_kind(&item.test);
    let mut still_crashes = |test: &Test| first.is_some() && crash_kind(test) == first;
    let weaker =
        |test: &Test| weaken_test(test).into_iter().map(|weakened| weakened.test).collect::<Vec<_>>();
    let max_tries = if first == Some(CrashKind::Hang) { MAX_HANG_TRIES } else { MAX_TRIES };
    let shrunk = shrink(&item.test, max_tries, &weaker, &mut still_crashes);
    litmus::print(&shrunk.test)
}
