//! Asks compilers: every kernel of every test on every device, a process a device at a time, as many at once as there are
//! processors.
//!
//! The kernels of a form go to a worker together. Where the worker does not come back, they are asked about one by one in
//! new processes, so that the kernel is known on which the compiler ends.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codegen::{Form, Unit};
use litmus::Test;
use runner::pool::{self, Calls, End, Event, Limits};

use crate::compiling::{Answer, Compiled, Failure as Told, Job, Kernel};
use crate::exit::Failure;

use super::targets::Target;

/// A form of a test: kernels that are compiled together.
#[derive(Clone, Debug)]
pub struct Question {
    /// The test.
    pub test: Arc<Test>,
    /// The form.
    pub form: Form,
    /// Its kernels.
    pub units: Vec<Unit>,
}

/// How compilers are asked.
#[derive(Clone, Debug)]
pub struct Asking {
    /// Whether intermediate forms are wanted.
    pub forms: bool,
    /// Time for the kernels of one form.
    pub patience: Duration,
    /// How the compiler is to behave, for this tool's own tests.
    pub misbehave: Option<String>,
}

/// What became of a kernel; `K` is what is kept of what was compiled.
#[derive(Clone, Debug)]
pub enum Made<K> {
    /// The driver compiled it.
    Compiled(K),
    /// The compiler ended its process or was ended, or the driver gave an error; how.
    Crashed(String),
    /// The device lacks something, by name.
    Lacks(String),
}

/// What is kept of a compiled kernel, made from the question, the kernel and what the driver said.
pub type Keep<'a, K> = &'a (dyn Fn(&Question, &Unit, Compiled) -> K + Sync);

impl Asking {
    /// Compiles the kernels of `questions` on `target`. The result has an entry for every kernel of every question.
    pub fn ask<K>(
        &self,
        program: &Path,
        target: &Target,
        questions: &[&Question],
        keep: Keep<'_, K>,
    ) -> Vec<Vec<Made<K>>> {
        let all: Vec<Vec<&Unit>> = questions.iter().map(|question| question.units.iter().collect()).collect();
        let answers = self.run(program, target, &all);
        let mut found = Vec::with_capacity(questions.len());
        for (question, answer) in questions.iter().zip(answers) {
            let made = match answer {
                Ok(answer) => made(question, &question.units, answer, keep),
                Err(together) => self.one_by_one(program, target, question, &together, keep),
            };
            found.push(made);
        }
        found
    }

    fn one_by_one<K>(
        &self,
        program: &Path,
        target: &Target,
        question: &Question,
        together: &str,
        keep: Keep<'_, K>,
    ) -> Vec<Made<K>> {
        let each: Vec<Vec<&Unit>> = question.units.iter().map(|unit| vec![unit]).collect();
        let answers = self.run(program, target, &each);
        let mut found: Vec<Made<K>> = question
            .units
            .iter()
            .zip(answers)
            .flat_map(|(unit, answer)| match answer {
                Ok(answer) => made(question, std::slice::from_ref(unit), answer, keep),
                Err(how) => vec![Made::Crashed(how)],
            })
            .collect();
        // Each went well alone: what ended the process was that they came one after another.
        if found.iter().all(|made| matches!(made, Made::Compiled(_)))
            && let Some(last) = found.last_mut()
        {
            *last = Made::Crashed(format!("{together} (after the other kernels of the form, not alone)"));
        }
        found
    }

    /// Runs jobs in a pool of one worker; for each job the answer, or how its worker ended.
    fn run(&self, program: &Path, target: &Target, jobs: &[Vec<&Unit>]) -> Vec<Result<Answer, String>> {
        let limits = Limits { silence: self.patience, give_up_after: NEVER_GIVE_UP, ..Limits::DEFAULT };
        let mut answers = Vec::with_capacity(jobs.len());
        pool::run(
            &limits,
            jobs.len(),
            Calls::<Job, (), Answer> {
                command: &mut || target.command(program),
                job: &mut |number, _| Job {
                    device: target.selector.clone(),
                    kernels: jobs
                        .get(number)
                        .map(|units| units.iter().map(|unit| Kernel::from(&unit.kernel)).collect())
                        .unwrap_or_default(),
                    forms: self.forms,
                    misbehave: self.misbehave.clone(),
                },
                event: &mut |event| {
                    if let Event::Finished(report) = event {
                        answers.push(match report.last.end {
                            End::Answered(answer) => Ok(answer),
                            End::Failed(failure) => Err(failure.to_string()),
                            End::NotRun(why) => Err(why.to_string()),
                        });
                    }
                    ControlFlow::Continue(())
                },
            },
        );
        answers
    }
}

/// A campaign goes on however many kernels end a compiler.
const NEVER_GIVE_UP: u32 = 1 << 24;

fn made<K>(question: &Question, units: &[Unit], answer: Answer, keep: Keep<'_, K>) -> Vec<Made<K>> {
    let mut kernels = answer.kernels.into_iter();
    units
        .iter()
        .map(|unit| match kernels.next() {
            Some(Ok(compiled)) => Made::Compiled(keep(question, unit, compiled)),
            Some(Err(error)) => Made::Crashed(error),
            None => match &answer.failure {
                Some(Told::Lacks(what)) => Made::Lacks(what.clone()),
                Some(Told::Driver(what)) => Made::Crashed(what.clone()),
                None => Made::Crashed("the worker gave no answer for the kernel".to_owned()),
            },
        })
        .collect()
}

/// This program's file, which workers are started from.
///
/// # Errors
/// When it is not known.
pub fn program() -> Result<std::path::PathBuf, Failure> {
    std::env::current_exe().map_err(Failure::environment_error)
}
