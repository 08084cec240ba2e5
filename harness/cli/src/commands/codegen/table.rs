//! What each relaxation of a test changes in its machine code, and the table of all.

use std::sync::Arc;

use ::campaign::compiling::Compiled;
use ::campaign::parallel::{in_order, map};
use codegen::differ::{kind_of_step, shape_of};
use codegen::{CodeDifference, Form, FormKernel, Machine, units};
use litmus::Test;
use model::synthesis::{TestStanding, standing_of, weakenings};
use model::{Model, Options};
use results::wire::{CODEGEN_DIFF_SCHEMA, CodegenDiffLine, CodegenDiffVerdict};

use crate::arguments::Codegen;
use crate::exit::{Failure, Outcome};
use crate::output::say;

use super::engine::{Asking, Made, Question, program};
use super::report::Printer;
use super::targets::Target;
use super::{Asked, Item, by_device};

/// The model that says whether a relaxation matters: RADV has no availability and visibility chains.
const MODEL: &str = "vulkan-nochains";

/// A relaxation of a test.
struct Relaxed {
    /// Index of the test.
    item: usize,
    step: String,
    test: Test,
    needed: Option<bool>,
}

/// What is known of the relaxations of a test.
enum Conformance {
    /// Its outcome is forbidden and it has no race: these are its relaxations.
    Conforming(Vec<Relaxed>),
    /// Its outcome is allowed anyway, or it races: nothing is to be lost.
    Other,
}

/// Runs it.
///
/// # Errors
/// When nothing can be started or printed.
pub fn table(arguments: &Codegen, asked: &Asked, printer: &mut Printer) -> Result<Outcome, Failure> {
    let asking = Asking { forms: false, patience: arguments.timeout, misbehave: arguments.misbehave.clone() };
    let program = program()?;
    let relaxed = relaxations(asked)?;
    let conforming = relaxed.iter().map(|relaxed| relaxed.item).collect::<std::collections::BTreeSet<_>>();
    let others = asked.items.len() - conforming.len();
    if others > 0 {
        say(&format!("{others} tests are left out: their outcome is allowed, or they race"));
    }
    let mut lines = Vec::new();
    by_device(
        asked,
        |target| compare(&asking, &program, target, asked, &relaxed),
        |_, of_target: Vec<CodegenDiffLine>| {
            for line in &of_target {
                printer.diff_line(line)?;
            }
            lines.extend(of_target);
            Ok(())
        },
    )?;
    printer.diff_table(&lines)?;
    Ok(Outcome::Success)
}

/// Of each test whether the model forbids the outcome that it asks about: what is allowed anyway says nothing about code.
pub fn conforming(asked: &Asked) -> Result<Vec<bool>, Failure> {
    let model = Model::shipped(MODEL).ok_or_else(|| Failure::not_available(format!("model `{MODEL}`")))?;
    let model = model.map_err(Failure::input)?;
    let all = map(&asked.items, |item| {
        item.test.question.is_some()
            && model.judges(item.test.dialect)
            && model::verdict(&item.test, &model, &Options::default())
                .is_ok_and(|says| standing_of(&item.test, &says) == TestStanding::Forbidden)
    });
    Ok(all)
}

fn relaxations(asked: &Asked) -> Result<Vec<Relaxed>, Failure> {
    let model = Model::shipped(MODEL).ok_or_else(|| Failure::not_available(format!("model `{MODEL}`")))?;
    let model = model.map_err(Failure::input)?;
    let standing = |test: &Test| {
        model::verdict(test, &model, &Options::default())
            .map_or(TestStanding::Unknown, |says| standing_of(test, &says))
    };
    let numbered: Vec<(usize, &Item)> = asked.items.iter().enumerate().collect();
    let mut all = Vec::new();
    let done: Result<(), std::convert::Infallible> = in_order(
        &numbered,
        |(number, item)| {
            let asks = item.test.question.is_some() && model.judges(item.test.dialect);
            if !asks || standing(&item.test) != TestStanding::Forbidden {
                return Conformance::Other;
            }
            let relaxed = weakenings(&item.test).into_iter().map(|weakened| Relaxed {
                item: *number,
                step: weakened.step,
                needed: match standing(&weakened.test) {
                    TestStanding::Allowed | TestStanding::Racy => Some(true),
                    TestStanding::Forbidden => Some(false),
                    TestStanding::Unknown => None,
                },
                test: weakened.test,
            });
            Conformance::Conforming(relaxed.collect())
        },
        |found| {
            if let Conformance::Conforming(relaxed) = found {
                all.extend(relaxed);
            }
            Ok(())
        },
    );
    match done {
        Ok(()) => Ok(all),
    }
}

/// The machine codes of the kernels of a form, or why there are none to compare.
type Codes = Result<Vec<Machine>, String>;

fn compare(
    asking: &Asking,
    program: &std::path::Path,
    target: &Target,
    asked: &Asked,
    relaxed: &[Relaxed],
) -> Vec<CodegenDiffLine> {
    let sizes = target.sizes(asked.lanes);
    let mut questions: Vec<Question> = Vec::new();
    let mut add = |test: &Test, form: Form, item: &Item| -> Result<usize, String> {
        let units = units(test, form, item.variant.told, &sizes).map_err(|error| error.to_string())?;
        if let Some(missing) = target.lacks(&units, &test.metadata.needs) {
            return Err(missing);
        }
        questions.push(Question { test: Arc::new(test.clone()), form, units });
        Ok(questions.len() - 1)
    };
    let mut pairs = Vec::new();
    for &form in &asked.forms {
        let mut base: Option<(usize, Result<usize, String>)> = None;
        for relaxed in relaxed {
            let Some(item) = asked.items.get(relaxed.item) else { continue };
            let known = match &base {
                Some((number, known)) if *number == relaxed.item => known.clone(),
                _ => {
                    let known = add(&item.test, form, item);
                    base = Some((relaxed.item, known.clone()));
                    known
                }
            };
            // A form that the test does not have is no comparison.
            let Ok(before) = known else { continue };
            pairs.push((form, relaxed, item, before, add(&relaxed.test, form, item)));
        }
    }
    let dialect = target.dialect();
    let keep =
        |_: &Question, _: &FormKernel, compiled: &Compiled| Machine::read(compiled.assembly(), dialect);
    let asked_questions: Vec<&Question> = questions.iter().collect();
    let codes: Vec<Codes> = asking
        .ask(program, target, &asked_questions, &keep)
        .into_iter()
        .map(|kernels| {
            kernels
                .into_iter()
                .map(|made| match made {
                    Made::Compiled(machine) => machine.map_err(|error| error.to_string()),
                    Made::Crashed(how) => Err(how),
                    Made::Lacks(what) => Err(what),
                })
                .collect()
        })
        .collect();
    let code = |index: usize| codes.get(index).cloned().unwrap_or_else(|| Err("no answer".to_owned()));
    let lines = pairs.into_iter().map(|(form, relaxed, item, before, after)| {
        let difference = after.and_then(|after| Ok(CodeDifference::of(&code(before)?, &code(after)?)));
        CodegenDiffLine {
            schema: CODEGEN_DIFF_SCHEMA.to_owned(),
            id: item.id.clone(),
            device: target.name.clone(),
            form: form.to_string(),
            shape: shape_of(&item.test.name).to_owned(),
            step: relaxed.step.clone(),
            relaxation: kind_of_step(&relaxed.step).to_owned(),
            needed: relaxed.needed,
            verdict: match &difference {
                Ok(difference) if difference.is_no_effect() => CodegenDiffVerdict::NoEffect,
                Ok(_) => CodegenDiffVerdict::Differs,
                Err(_) => CodegenDiffVerdict::Skipped,
            },
            detail: difference.map_or_else(|why| why, |difference| difference.to_string()),
        }
    });
    lines.collect()
}
