//! `worker`: the process that calls drivers, so that a driver crash cannot end the main process.

use std::time::Duration;

use campaign::probe::{DeviceList, FoundDevice};
use campaign::targets::PROGRESS_PREFIX;
use campaign::workers::SEPARATOR;
use campaign::{compile_worker, fault_injection};
use device::{DeviceOptions, DriverEnvironment, VulkanDevice};
use plan::{Device, DeviceError};
use runner::RunSettings;
use sim::{Fault, SimDevice};

use crate::arguments::Worker;
use crate::exit::{Failure, Outcome};
use crate::output::print_text;

/// Runs the command.
///
/// # Errors
/// Returns an error if the communication with the parent fails.
pub fn worker(arguments: &Worker) -> Result<Outcome, Failure> {
    if arguments.list {
        return print_device_list();
    }
    if arguments.compile {
        compile_worker::serve_compile_jobs().map_err(Failure::environment_error)?;
        return Ok(Outcome::Success);
    }
    if let (Some(selector), Some(seconds)) = (&arguments.classic, arguments.seconds) {
        return run_classic(selector, seconds);
    }
    let options = DeviceOptions { validation: arguments.validate, ..DeviceOptions::default() };
    if arguments.progress {
        runner::progress::serve(&mut |selector| open_device(selector, options))
            .map_err(Failure::environment_error)?;
        return Ok(Outcome::Success);
    }
    if arguments.shader {
        runner::shader::serve(&mut |selector| open_device(selector, options))
            .map_err(Failure::environment_error)?;
        return Ok(Outcome::Success);
    }
    runner::worker::serve(&mut |selector| open_device(selector, options))
        .map_err(Failure::environment_error)?;
    Ok(Outcome::Success)
}

fn open_device(selector: &str, options: DeviceOptions) -> Result<Box<dyn Device>, DeviceError> {
    fault_injection::inject_fault(selector)?;
    let (name, fault) = selector.split_once(':').unwrap_or((selector, ""));
    if name == SimDevice::NAME {
        if let Some(model) = fault.strip_prefix(PROGRESS_PREFIX) {
            let model = model.parse().map_err(|_| DeviceError::NoSuchDevice(selector.to_owned()))?;
            return Ok(Box::new(SimDevice::with_progress_model(model)));
        }
        let fault = if fault.is_empty() { Ok(Fault::None) } else { fault.parse() };
        let fault = fault.map_err(|_| DeviceError::NoSuchDevice(selector.to_owned()))?;
        return Ok(Box::new(SimDevice::new(fault)));
    }
    if vendor::parse_selector(selector).is_some() {
        return Ok(Box::new(compile_worker::open_compile_only(selector, options)?));
    }
    let device_selector = selector.parse().map_err(|_| DeviceError::NoSuchDevice(selector.to_owned()))?;
    Ok(Box::new(VulkanDevice::open(&device_selector, options)?))
}

/// Runs the classic scheme for `bench`. The parent ends this process if it takes too long.
fn run_classic(selector: &str, seconds: f64) -> Result<Outcome, Failure> {
    end_with_parent()?;
    let time = Duration::try_from_secs_f64(seconds).map_err(Failure::input_error)?;
    let device = open_device(selector, DeviceOptions::default()).map_err(Failure::environment_error)?;
    let outcomes = runner::classic::run(device.as_ref(), time, RunSettings::SUBMISSION_TIMEOUT);
    let seen = outcomes.map_err(Failure::environment_error)?;
    let text = serde_json::to_string(&seen).map_err(Failure::environment_error)?;
    print_text(&format!("{SEPARATOR}{text}\n"))
}

fn end_with_parent() -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(Failure::environment_error)?;
    Ok(())
}

fn print_device_list() -> Result<Outcome, Failure> {
    end_with_parent()?;
    let listed = device::list_devices();
    let loader = !matches!(listed, Err(DeviceError::NoLoader(_)));
    let devices = listed.map_err(|error| error.to_string()).map(|devices| {
        devices
            .into_iter()
            .map(|d| FoundDevice { index: d.index, identity: d.identity, capabilities: d.capabilities })
            .collect()
    });
    let environment = DriverEnvironment::discover().map_err(Failure::environment_error)?;
    let unusable = device::find_unusable(environment.files()).iter().map(ToString::to_string).collect();
    let answer = DeviceList { devices, loader, unusable };
    let text = serde_json::to_string(&answer).map_err(Failure::environment_error)?;
    print_text(&format!("{SEPARATOR}{text}\n"))
}
