//! The smallest test on which a compiler ends.

use std::path::Path;
use std::sync::Arc;

use codegen::{Form, shrink, units};
use litmus::Test;
use model::synthesis::weakenings;

use super::engine::{Asking, Made, Question};
use super::targets::Target;
use super::{Asked, Item};

/// How often a compiler is asked at most for one test that crashes it, and for one on which it hangs: there each try takes
/// all the time that it is given.
const MOST_TRIES: u32 = 200;
const MOST_TRIES_OF_HANGS: u32 = 8;

/// Begins what is said of a compiler that was ended since it gave no answer.
const HANG: &str = "no answer after";

/// Reduces tests.
pub struct Reducer<'a> {
    asking: Asking,
    program: &'a Path,
}

impl<'a> Reducer<'a> {
    /// One that asks as the campaign does.
    pub fn new(asking: Asking, program: &'a Path) -> Reducer<'a> {
        Reducer { asking, program }
    }

    /// The text of the smallest test whose kernels of `form` still end the compiler of `target`.
    pub fn reduce(&self, item: &Item, form: Form, how: &str, target: &Target, asked: &Asked) -> String {
        let sizes = target.sizes(asked.lanes);
        let mut ends = |test: &Test| {
            let Ok(units) = units(test, form, item.variant.told, &sizes) else { return false };
            let question = Question { test: Arc::new(test.clone()), form, units };
            let made = self.asking.ask(self.program, target, &[&question], &|_, _, _| ());
            made.iter().flatten().any(|made| matches!(made, Made::Crashed(_)))
        };
        let weaker =
            |test: &Test| weakenings(test).into_iter().map(|weakened| weakened.test).collect::<Vec<_>>();
        let most = if how.starts_with(HANG) { MOST_TRIES_OF_HANGS } else { MOST_TRIES };
        let shrunk = shrink(&item.test, most, &weaker, &mut ends);
        litmus::print(&shrunk.test)
    }
}
