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
use runner::pool::{self, AttemptEnd, Limits, PoolCallbacks, PoolEvent, WorkerFailure};

use crate::compile_worker::{CompilationResult, CompileAnswer, CompileFailure, CompileJob, KernelToCompile};
use crate::{Failure, workers};

use super::targets::CompilerTarget;

/// The kernels of a test in one form, which are compiled together.
#[derive(Clone, Debug)]
pub struct FormKernels {
    pub test: Arc<Test>,
    pub form: Form,
    pub kernels: Vec<FormKernel>,
}

/// Runs compilers in worker processes.
#[derive(Clone, Debug)]
pub struct CompilerEngine {
    /// Also return intermediate representations.
    pub wants_representations: bool,
    /// Time limit for the kernels of one job.
    pub timeout: Duration,
    /// Fault injection for the tests of this tool.
    pub injected_fault: Option<String>,
    /// The executable that workers are started from.
    pub program: PathBuf,
}

/// The result of compiling a kernel; `K` is the value that the caller extracts from it.
#[derive(Clone, Debug)]
pub enum KernelResult<K> {
    /// The driver compiled the kernel.
    Compiled(K),
    /// The compiler crashed, was killed or returned an error, described here.
    Crashed(String),
    /// The device lacks this feature.
    MissingFeature(String),
}

/// The way in which a compiler fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashKind {
    /// It did not answer in time.
    Hang,
    /// It crashed, was killed or returned an error.
    Error,
}

/// Extracts a value from a compiled kernel.
pub type ResultExtractor<'a, K> = &'a (dyn Fn(&FormKernels, &FormKernel, &CompilationResult) -> K + Sync);

/// Kernels of a job: enough that messages cost little compared with compiling.
const KERNELS_PER_JOB: usize = 16;

impl CompilerEngine {
    /// Creates an engine without intermediate representations.
    ///
    /// # Errors
    /// If the path of this executable is unknown.
    pub fn new(timeout: Duration, injected_fault: Option<String>) -> Result<CompilerEngine, Failure> {
        Ok(CompilerEngine {
            wants_representations: false,
            timeout,
            injected_fault,
            program: workers::program_path()?,
        })
    }

    /// Compiles the kernels of `kernel_sets` on `target`. The result has one entry for every kernel of every
    /// set.
    ///
    /// Equal kernels are compiled once, because many tests share the code of a thread.
    pub fn compile_forms<K>(
        &self,
        target: &CompilerTarget,
        kernel_sets: &[&FormKernels],
        extract: ResultExtractor<'_, K>,
    ) -> Vec<Vec<KernelResult<K>>> {
        let mut indices: BTreeMap<KernelToCompile, usize> = BTreeMap::new();
        let mut kernels: Vec<KernelToCompile> = Vec::new();
        let mut kernel_indices: Vec<Vec<usize>> = Vec::with_capacity(kernel_sets.len());
        for kernel_set in kernel_sets {
            let index_of = |unit: &FormKernel| {
                let kernel = KernelToCompile::from(&unit.kernel);
                *indices.entry(kernel).or_insert_with_key(|kernel| {
                    kernels.push(kernel.clone());
                    kernels.len() - 1
                })
            };
            kernel_indices.push(kernel_set.kernels.iter().map(index_of).collect());
        }
        let results = self.compile_kernels(target, &kernels);
        let extract_one =
            |kernel_set: &FormKernels, unit: &FormKernel, number: &usize| match results.get(*number) {
                Some(KernelResult::Compiled(compiled)) => {
                    KernelResult::Compiled(extract(kernel_set, unit, compiled))
                }
                Some(KernelResult::Crashed(how)) => KernelResult::Crashed(how.clone()),
                Some(KernelResult::MissingFeature(what)) => KernelResult::MissingFeature(what.clone()),
                None => KernelResult::Crashed("no answer for the kernel".to_owned()),
            };
        kernel_sets
            .iter()
            .zip(&kernel_indices)
            .map(|(kernel_set, numbers)| {
                kernel_set
                    .kernels
                    .iter()
                    .zip(numbers)
                    .map(|(unit, number)| extract_one(kernel_set, unit, number))
                    .collect()
            })
            .collect()
    }

    /// Compiles each kernel and returns its result.
    pub fn compile_kernels(
        &self,
        target: &CompilerTarget,
        kernels: &[KernelToCompile],
    ) -> Vec<KernelResult<CompilationResult>> {
        let jobs: Vec<&[KernelToCompile]> = kernels.chunks(KERNELS_PER_JOB).collect();
        let answers = self.run_jobs(target, &jobs);
        let mut results = Vec::with_capacity(kernels.len());
        for (kernels, answer) in jobs.into_iter().zip(answers) {
            match answer {
                Ok(answer) => results.extend(result(kernels.len(), answer)),
                Err((kind, batch_error)) => {
                    let mut compiled = self.compile_one_by_one(target, kernels);
                    // Each kernel compiles separately, so a crash depends on the kernels before it. Many together may only take
                    // too long.
                    if kind == CrashKind::Error
                        && compiled.iter().all(|result| matches!(result, KernelResult::Compiled(_)))
                        && let Some(last) = compiled.last_mut()
                    {
                        *last =
                            KernelResult::Crashed(format!("{batch_error} (after other kernels, not alone)"));
                    }
                    results.extend(compiled);
                }
            }
        }
        results
    }

    /// Returns how the compiler crashes on these kernels, without finding out on which; `None` if it compiles all.
    pub fn crash_kind(&self, target: &CompilerTarget, kernels: &[KernelToCompile]) -> Option<CrashKind> {
        self.run_jobs(target, &[kernels]).into_iter().find_map(|answer| match answer {
            Ok(answer) => result(kernels.len(), answer).into_iter().find_map(|made| match made {
                KernelResult::Crashed(_) => Some(CrashKind::Error),
                KernelResult::Compiled(_) | KernelResult::MissingFeature(_) => None,
            }),
            Err((kind, _)) => Some(kind),
        })
    }

    fn compile_one_by_one(
        &self,
        target: &CompilerTarget,
        kernels: &[KernelToCompile],
    ) -> Vec<KernelResult<CompilationResult>> {
        let single_kernels: Vec<&[KernelToCompile]> = kernels.chunks(1).collect();
        let answers = self.run_jobs(target, &single_kernels).into_iter();
        let to_results = |answer| match answer {
            Ok(answer) => result(1, answer),
            Err((_, how)) => vec![KernelResult::Crashed(how)],
        };
        answers.flat_map(to_results).collect()
    }

    /// Runs jobs in a pool with one worker; returns the answer or the crash of each.
    fn run_jobs(
        &self,
        target: &CompilerTarget,
        jobs: &[&[KernelToCompile]],
    ) -> Vec<Result<CompileAnswer, (CrashKind, String)>> {
        let mut answers = Vec::with_capacity(jobs.len());
        if jobs.is_empty() {
            return answers;
        }
        let limits = Limits {
            silence: self.timeout,
            counts_processor_time: true,
            give_up_after: NEVER_GIVE_UP,
            ..Limits::with_memory_limit()
        };
        pool::run(
            &limits,
            jobs.len(),
            PoolCallbacks::<CompileJob, (), CompileAnswer> {
                make_command: &mut || target.command(&self.program),
                make_job: &mut |number, _| CompileJob {
                    device: target.selector.clone(),
                    kernels: jobs.get(number).map(|kernels| kernels.to_vec()).unwrap_or_default(),
                    forms: self.wants_representations,
                    misbehave: self.injected_fault.clone(),
                },
                on_event: &mut |event| {
                    if let PoolEvent::Finished(report) = event {
                        answers.push(match report.last.end {
                            AttemptEnd::Answered(answer) => Ok(answer),
                            AttemptEnd::Failed(failure @ WorkerFailure::TimedOut { .. }) => {
                                Err((CrashKind::Hang, failure.to_string()))
                            }
                            AttemptEnd::Failed(failure) => Err((CrashKind::Error, failure.to_string())),
                            AttemptEnd::NotRun(why) => Err((CrashKind::Error, why.to_string())),
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
fn result(count: usize, answer: CompileAnswer) -> Vec<KernelResult<CompilationResult>> {
    let failure = answer.failure;
    let mut kernels = answer.kernels.into_iter();
    let to_result = |failure: Option<CompileFailure>| match failure {
        Some(CompileFailure::Lacks(what)) => KernelResult::MissingFeature(what),
        Some(CompileFailure::Driver(what)) => KernelResult::Crashed(what),
        None => KernelResult::Crashed("no answer for the kernel".to_owned()),
    };
    (0..count)
        .map(|_| match kernels.next() {
            Some(Ok(compiled)) => KernelResult::Compiled(compiled),
            Some(Err(failure)) => to_result(Some(failure)),
            None => to_result(failure.clone()),
        })
        .collect()
}
