//! A test with all that its predictions depend on.

use litmus::{Observable, Test};

use crate::Model;
use crate::prepared::ModelPlans;
use crate::skeleton::ExecutionSemantics;

/// A test under a model, with a loop bound.
#[derive(Clone, Copy)]
pub(crate) struct BoundedTest<'a> {
    pub(crate) test: &'a Test,
    pub(crate) compiled: &'a ModelPlans,
    pub(crate) observables: &'a [Observable],
    pub(crate) semantic: ExecutionSemantics,
    pub(crate) unroll: u32,
}

impl<'a> BoundedTest<'a> {
    pub(crate) fn new(
        test: &'a Test,
        model: &Model,
        compiled: &'a ModelPlans,
        observables: &'a [Observable],
        unroll: u32,
    ) -> BoundedTest<'a> {
        BoundedTest { test, compiled, observables, semantic: model.execution_semantics(), unroll }
    }
}
