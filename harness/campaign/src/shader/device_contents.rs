//! The contents that one dispatch leaves on a device. It runs in a worker process: a driver may crash or hang.

use std::ops::ControlFlow;

use analysis::dispatch::{KernelDispatch, uses_subgroups};
use entry_point::AnalysisOptions;
use runner::pool::{self, AttemptEnd, Limits, NotRun, PoolCallbacks, PoolEvent};
use runner::shader::{Answer, ShaderObservations, UserShaderJob};
use runner::{RunSettings, Stress};
use spirv_reader::SpirvModule;

use super::prepare_run::device_shader;
use crate::Failure;
use crate::kinds::shader::AnalyzedShader;
use crate::targets::{self, DeviceTarget};
use crate::workers::{WorkerTask, program_path};

/// Bytes of a buffer or an image after a dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceBuffer {
    /// Set, binding, and element of an array.
    pub at: [u32; 3],
    pub bytes: Vec<u8>,
}

/// A device on which kernels are dispatched once.
#[derive(Debug)]
pub struct ContentsDevice(DeviceTarget);

impl ContentsDevice {
    /// Selects a device by its name, as `--device` takes it.
    ///
    /// # Errors
    /// If the device does not exist, or is compile-only.
    pub fn select(selector: &str) -> Result<ContentsDevice, Failure> {
        targets::select_one(Some(selector), &|_| {}).map(ContentsDevice)
    }

    /// Sets the subgroup size to that of the device if a module depends on it.
    ///
    /// # Errors
    /// If the options have another one.
    pub fn fit_subgroup_size(
        &self,
        module: &SpirvModule,
        options: &mut AnalysisOptions,
    ) -> Result<(), Failure> {
        let size = self.0.listed.capabilities.subgroup_size.max(1);
        match options.subgroup_size {
            Some(given) if given != size => Err(Failure::input_message(format!(
                "a subgroup size of {given}; expected {size}, which {} has, or none",
                self.0.name
            ))),
            None if uses_subgroups(module) => {
                options.subgroup_size = Some(size);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Dispatches a kernel once.
    ///
    /// # Errors
    /// If the device lacks a feature of the kernel, or does not complete the dispatch.
    pub fn dispatch(&self, dispatch: KernelDispatch) -> Result<Vec<DeviceBuffer>, Failure> {
        let mut shader = AnalyzedShader::new(String::new(), String::new(), dispatch.entry.clone());
        device_shader(&mut shader, dispatch);
        dispatch_once(&self.0, &shader)
    }
}

fn dispatch_once(target: &DeviceTarget, shader: &AnalyzedShader) -> Result<Vec<DeviceBuffer>, Failure> {
    let listed = &target.listed;
    if let Some(missing) = shader.missing_requirement(&listed.identity, &listed.capabilities) {
        return Err(Failure::environment_message(format!("{}: {missing}", target.name)));
    }
    let written: Vec<_> = shader.shader.buffers.iter().filter(|buffer| !buffer.uniform).collect();
    let words =
        |buffer: usize| (0..written[buffer].words().len() as u64).map(move |word| (buffer as u32, word));
    let job = UserShaderJob {
        id: shader.id.clone(),
        device: target.selector.clone(),
        shader: shader.shader.clone(),
        watched: (0..written.len()).flat_map(words).collect(),
        instances: Some(1),
        seconds: None,
        seed: 0,
        stress: Some(Stress::preset("small").map_err(Failure::input_error)?),
        patience: RunSettings::SUBMISSION_TIMEOUT.as_secs_f64(),
    };
    let program = program_path()?;
    let task = WorkerTask::Shader { validate: false };
    let mut end = AttemptEnd::NotRun(NotRun::TimeIsUp);
    pool::run(
        &Limits::with_memory_limit(),
        1,
        PoolCallbacks {
            make_command: &mut || target.worker_environment.command(&program, &task),
            make_job: &mut |_, _| job.clone(),
            on_event: &mut |event: PoolEvent<'_, ShaderObservations, Answer>| {
                if let PoolEvent::Finished(report) = event {
                    end = report.last.end;
                }
                ControlFlow::Continue(())
            },
        },
    );
    let failed = |what: String| Failure::environment_message(format!("{}: {what}", target.name));
    let answer = match end {
        AttemptEnd::Answered(Answer { failure: Some(failure), .. }) => {
            return Err(failed(failure.to_string()));
        }
        AttemptEnd::Answered(answer) => answer,
        AttemptEnd::Failed(failure) => return Err(failed(failure.to_string())),
        AttemptEnd::NotRun(why) => return Err(failed(why.to_string())),
    };
    let [content] = &answer.seen.contents[..] else {
        return Err(failed("the device did not execute the dispatch completely".to_owned()));
    };
    let mut words = content.watched.iter();
    let to_bytes = |buffer: &&runner::shader::ShaderInput| DeviceBuffer {
        at: buffer.at,
        bytes: words.by_ref().take(buffer.words().len()).flat_map(|word| word.to_le_bytes()).collect(),
    };
    Ok(written.iter().map(to_bytes).collect())
}
