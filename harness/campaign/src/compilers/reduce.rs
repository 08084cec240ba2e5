//! Reduces a test that crashes a compiler, by delta debugging over its weakenings.

use codegen::{Form, form_kernels, shrink};
use litmus::Test;
use model::synthesis::weakenings;

use super::engine::Engine;
use super::targets::CompilerTarget;
use super::{CodegenRequest, CompiledTest};
use crate::compiling::KernelToCompile;

/// Limits on the compiler calls for one test: a hang costs the full time limit on each try.
const MOST_TRIES: u32 = 200;
const MOST_TRIES_OF_HANGS: u32 = 8;

/// The start of the message about a compiler that did not answer in time.
const HANG: &str = "no answer after";

/// Returns the text of the smallest test whose kernels of `form` still crash the compiler of `target`.
pub fn reduced(
    engine: &Engine,
    item: &CompiledTest,
    form: Form,
    how: &str,
    target: &CompilerTarget,
    asked: &CodegenRequest,
) -> String {
    let sizes = target.sizes(asked.lanes);
    let mut ends = |test: &Test| {
        // With only one workgroup left, the test cannot be split, and its kernel is the merged one.
        let made = form_kernels(test, form, item.variant.shader, &sizes)
            .or_else(|_| form_kernels(test, Form::Merged, form.compile_variant(item.variant.shader), &sizes));
        let Ok(units) = made else { return false };
        let kernels: Vec<KernelToCompile> =
            units.iter().map(|unit| KernelToCompile::from(&unit.kernel)).collect();
        engine.ends(target, &kernels)
    };
    let weaker = |test: &Test| weakenings(test).into_iter().map(|weakened| weakened.test).collect::<Vec<_>>();
    let most = if how.starts_with(HANG) { MOST_TRIES_OF_HANGS } else { MOST_TRIES };
    let shrunk = shrink(&item.test, most, &weaker, &mut ends);
    litmus::print(&shrunk.test)
}
