//! Asks compilers: every kernel of every test on every device, a process a device at a time, as many at once as there are
//! processors.
//!
//! Kernels go to a worker some at a time. Where the worker does not come back, they are asked about one by one, so that the
//! kernel is known on which the compiler ends.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codegen::{Form, FormKernel};
use litmus::Test;
use runner::pool::{self, Calls, End, Event, Limits};

use crate::compiling::{CompileAnswer, CompileFailure as Told, CompileJob, Compiled, KernelToCompile};
use crate::{Failure, workers};

use super::targets::Target;

/// A form of a test: kernels that are compiled together.
#[derive(Clone, Debug)]
pub struct FormKernels {
    /// The test.
    pub test: Arc<Test>,
    /// The form.
    pub form: Form,
    /// Its kernels.
    pub units: Vec<FormKernel>,
}

/// How compilers are asked.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Whether intermediate forms are wanted.
    pub forms: bool,
    /// Time for the kernels of one job.
    pub patience: Duration,
    /// How the compiler is to behave, for this tool's own tests.
    pub misbehave: Option<String>,
    /// This program's file, which workers are started from.
    pub program: PathBuf,
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
pub type Keep<'a, K> = &'a (dyn Fn(&FormKernels, &FormKernel, &Compiled) -> K + Sync);

/// Kernels of a job: so many that talking costs little beside compiling.
const KERNELS_OF_A_JOB: usize = 16;

impl Engine {
    /// Without intermediate forms.
    ///
    /// # Errors
    /// When this program's file is not known.
    pub fn new(patience: Duration, misbehave: Option<String>) -> Result<Engine, Failure> {
        Ok(Engine { forms: false, patience, misbehave, program: workers::program()? })
    }

    /// Compiles the kernels of `questions` on `target`. The result has an entry for every kernel of every question. Kernels
    /// that are the same are compiled once: many tests share the code of a thread.
    pub fn ask<K>(
        &self,
        target: &Target,
        questions: &[&FormKernels],
        keep: Keep<'_, K>,
    ) -> Vec<Vec<Made<K>>> {
        let mut numbers: BTreeMap<KernelToCompile, usize> = BTreeMap::new();
        let mut kernels: Vec<KernelToCompile> = Vec::new();
        let mut places: Vec<Vec<usize>> = Vec::with_capacity(questions.len());
        for question in questions {
            let number_of = |unit: &FormKernel| {
                let kernel = KernelToCompile::from(&unit.kernel);
                *numbers.entry(kernel).or_insert_with_key(|kernel| {
                    kernels.push(kernel.clone());
                    kernels.len() - 1
                })
            };
            places.push(question.units.iter().map(number_of).collect());
        }
        let made = self.compile(target, &kernels);
        let one = |question: &FormKernels, unit: &FormKernel, number: &usize| match made.get(*number) {
            Some(Made::Compiled(compiled)) => Made::Compiled(keep(question, unit, compiled)),
            Some(Made::Crashed(how)) => Made::Crashed(how.clone()),
            Some(Made::Lacks(what)) => Made::Lacks(what.clone()),
            None => Made::Crashed("no answer for the kernel".to_owned()),
        };
        questions
            .iter()
            .zip(&places)
            .map(|(question, numbers)| {
                question.units.iter().zip(numbers).map(|(unit, number)| one(question, unit, number)).collect()
            })
            .collect()
    }

    /// What became of each kernel.
    pub fn compile(&self, target: &Target, kernels: &[KernelToCompile]) -> Vec<Made<Compiled>> {
        let jobs: Vec<&[KernelToCompile]> = kernels.chunks(KERNELS_OF_A_JOB).collect();
        let answers = self.run(target, &jobs);
        let mut found = Vec::with_capacity(kernels.len());
        for (kernels, answer) in jobs.into_iter().zip(answers) {
            match answer {
                Ok(answer) => found.extend(made(kernels.len(), answer)),
                Err(together) => found.extend(self.one_by_one(target, kernels, &together)),
            }
        }
        found
    }

    /// Whether a compiler ends on the kernels, without a look at which of them it is.
    pub fn ends(&self, target: &Target, kernels: &[KernelToCompile]) -> bool {
        self.run(target, &[kernels]).into_iter().any(|answer| match answer {
            Ok(answer) => made(kernels.len(), answer).iter().any(|made| matches!(made, Made::Crashed(_))),
            Err(_) => true,
        })
    }

    fn one_by_one(
        &self,
        target: &Target,
        kernels: &[KernelToCompile],
        together: &str,
    ) -> Vec<Made<Compiled>> {
        let each: Vec<&[KernelToCompile]> = kernels.chunks(1).collect();
        let answers = self.run(target, &each);
        let mut found: Vec<Made<Compiled>> = answers
            .into_iter()
            .flat_map(|answer| match answer {
                Ok(answer) => made(1, answer),
                Err(how) => vec![Made::Crashed(how)],
            })
            .collect();
        // Each went well alone: what ended the process was that they came one after another.
        if found.iter().all(|made| matches!(made, Made::Compiled(_)))
            && let Some(last) = found.last_mut()
        {
            *last = Made::Crashed(format!("{together} (after other kernels, not alone)"));
        }
        found
    }

    /// Runs jobs in a pool of one worker; for each job the answer, or how its worker ended.
    fn run(&self, target: &Target, jobs: &[&[KernelToCompile]]) -> Vec<Result<CompileAnswer, String>> {
        let mut answers = Vec::with_capacity(jobs.len());
        if jobs.is_empty() {
            return answers;
        }
        let limits = Limits { silence: self.patience, give_up_after: NEVER_GIVE_UP, ..Limits::DEFAULT };
        pool::run(
            &limits,
            jobs.len(),
            Calls::<CompileJob, (), CompileAnswer> {
                command: &mut || target.command(&self.program),
                job: &mut |number, _| CompileJob {
                    device: target.selector.clone(),
                    kernels: jobs.get(number).map(|kernels| kernels.to_vec()).unwrap_or_default(),
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

/// What an answer says of each of `count` kernels.
fn made(count: usize, answer: CompileAnswer) -> Vec<Made<Compiled>> {
    let failure = answer.failure;
    let mut kernels = answer.kernels.into_iter();
    let failed = |failure: Option<Told>| match failure {
        Some(Told::Lacks(what)) => Made::Lacks(what),
        Some(Told::Driver(what)) => Made::Crashed(what),
        None => Made::Crashed("no answer for the kernel".to_owned()),
    };
    (0..count)
        .map(|_| match kernels.next() {
            Some(Ok(compiled)) => Made::Compiled(compiled),
            Some(Err(failure)) => failed(Some(failure)),
            None => failed(failure.clone()),
        })
        .collect()
}
