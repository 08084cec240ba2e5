//! Runs compilers in worker processes: one process for each device, as many in parallel as there are
//! processors.
//!
//! A worker gets several kernels in one job. If the worker crashes, they are compiled again one by one to
//! find the kernel that crashes the compiler.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codegen::{Form, FormKernel};
use litmus::Test;
use runner::pool::{self, AttemptEnd, Limits, PoolCallbacks, PoolEvent};

use crate::compiling::{CompilationResult, CompileAnswer, CompileFailure, CompileJob, KernelToCompile};
use crate::{Failure, workers};

use super::targets::CompilerTarget;

/// The kernels of a test in one form, which are compiled together.
#[derive(Clone, Debug)]
pub struct FormKernels {
    /// The test.
    pub test: Arc<Test>,
    /// The form.
    pub form: Form,
    /// The kernels.
    pub units: Vec<FormKernel>,
}

/// The options for running compilers.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Also return intermediate representations.
    pub forms: bool,
    /// Time limit for the kernels of one job.
    pub patience: Duration,
    /// Fault injection for the tests of this tool.
    pub misbehave: Option<String>,
    /// The executable that workers are started from.
    pub program: PathBuf,
}

/// The result of compiling a kernel; `K` is the value that the caller extracts from it.
#[derive(Clone, Debug)]
pub enum Made<K> {
    /// The driver compiled the kernel.
    Compiled(K),
    /// The compiler crashed, was killed or returned an error, described here.
    Crashed(String),
    /// The device lacks this feature.
    Lacks(String),
}

/// Extracts a value from a compiled kernel.
pub type Keep<'a, K> = &'a (dyn Fn(&FormKernels, &FormKernel, &CompilationResult) -> K + Sync);

/// Kernels of a job: enough that messages cost little compared with compiling.
const KERNELS_OF_A_JOB: usize = 16;

impl Engine {
    /// Creates an engine without intermediate representations.
    ///
    /// # Errors
    /// If the path of this executable is unknown.
    pub fn new(patience: Duration, misbehave: Option<String>) -> Result<Engine, Failure> {
        Ok(Engine { forms: false, patience, misbehave, program: workers::program()? })
    }

    /// Compiles the kernels of `questions` on `target`. The result has one entry for every kernel of every
    /// question.
    ///
    /// Equal kernels are compiled once, because many tests share the code of a thread.
    pub fn ask<K>(
        &self,
        target: &CompilerTarget,
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

    /// Compiles each kernel and returns its result.
    pub fn compile(
        &self,
        target: &CompilerTarget,
        kernels: &[KernelToCompile],
    ) -> Vec<Made<CompilationResult>> {
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

    /// Returns true if the compiler crashes on these kernels, without finding out on which.
    pub fn ends(&self, target: &CompilerTarget, kernels: &[KernelToCompile]) -> bool {
        self.run(target, &[kernels]).into_iter().any(|answer| match answer {
            Ok(answer) => made(kernels.len(), answer).iter().any(|made| matches!(made, Made::Crashed(_))),
            Err(_) => true,
        })
    }

    fn one_by_one(
        &self,
        target: &CompilerTarget,
        kernels: &[KernelToCompile],
        together: &str,
    ) -> Vec<Made<CompilationResult>> {
        let each: Vec<&[KernelToCompile]> = kernels.chunks(1).collect();
        let answers = self.run(target, &each);
        let mut found: Vec<Made<CompilationResult>> = answers
            .into_iter()
            .flat_map(|answer| match answer {
                Ok(answer) => made(1, answer),
                Err(how) => vec![Made::Crashed(how)],
            })
            .collect();
        // Each kernel compiles separately, so the crash depends on the kernels before it.
        if found.iter().all(|made| matches!(made, Made::Compiled(_)))
            && let Some(last) = found.last_mut()
        {
            *last = Made::Crashed(format!("{together} (after other kernels, not alone)"));
        }
        found
    }

    /// Runs jobs in a pool with one worker; returns the answer or the crash of each.
    fn run(
        &self,
        target: &CompilerTarget,
        jobs: &[&[KernelToCompile]],
    ) -> Vec<Result<CompileAnswer, String>> {
        let mut answers = Vec::with_capacity(jobs.len());
        if jobs.is_empty() {
            return answers;
        }
        let limits =
            Limits { silence: self.patience, give_up_after: NEVER_GIVE_UP, ..Limits::with_memory_limit() };
        pool::run(
            &limits,
            jobs.len(),
            PoolCallbacks::<CompileJob, (), CompileAnswer> {
                make_command: &mut || target.command(&self.program),
                make_job: &mut |number, _| CompileJob {
                    device: target.selector.clone(),
                    kernels: jobs.get(number).map(|kernels| kernels.to_vec()).unwrap_or_default(),
                    forms: self.forms,
                    misbehave: self.misbehave.clone(),
                },
                on_event: &mut |event| {
                    if let PoolEvent::Finished(report) = event {
                        answers.push(match report.last.end {
                            AttemptEnd::Answered(answer) => Ok(answer),
                            AttemptEnd::Failed(failure) => Err(failure.to_string()),
                            AttemptEnd::NotRun(why) => Err(why.to_string()),
                        });
                    }
                    ControlFlow::Continue(())
                },
            },
        );
        answers
    }
}

/// A campaign continues no matter how many kernels crash a compiler.
const NEVER_GIVE_UP: u32 = 1 << 24;

/// Splits an answer into the results of its `count` kernels.
fn made(count: usize, answer: CompileAnswer) -> Vec<Made<CompilationResult>> {
    let failure = answer.failure;
    let mut kernels = answer.kernels.into_iter();
    let failed = |failure: Option<CompileFailure>| match failure {
        Some(CompileFailure::Lacks(what)) => Made::Lacks(what),
        Some(CompileFailure::Driver(what)) => Made::Crashed(what),
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
