//! The parts of a run line that the kinds of a run share: its device, its model, and the command that repeats it.

use results::wire::{Hashes, RunContext};

use super::{copyable_command, quote_for_shell};
use crate::models::LoadedModel;
use crate::targets::DeviceTarget;

/// Returns the facts of a run line about its device, model and command; the kind of run adds its test.
pub(super) fn line_context(
    target: &DeviceTarget,
    chosen: &LoadedModel,
    seed: u64,
    replay: String,
) -> RunContext {
    RunContext {
        device: target.name.clone(),
        model: chosen.model.name().to_owned(),
        seed,
        stress: target.stress.name.clone(),
        replay,
        hashes: Hashes { model: chosen.hash.clone(), ..Hashes::default() },
        driver: Some(verdicts::driver_record(&target.listed.identity)),
        ..RunContext::default()
    }
}

/// Returns a command to copy that runs one test again. `words` name the test, and `flags` follow the number of
/// instances.
pub(super) fn replay_command(
    words: &[&str],
    target: &DeviceTarget,
    seed: u64,
    instances: Option<u64>,
    flags: &[(&str, Option<&str>)],
) -> String {
    let mut command = "vk-litmus run".to_owned();
    for word in words {
        command += &format!(" {}", quote_for_shell(word));
    }
    command += &format!(" --device {} --seed {seed}", quote_for_shell(target.device_argument()));
    if let Some(instances) = instances {
        command += &format!(" --instances {instances}");
    }
    for (flag, value) in flags.iter().filter_map(|(flag, value)| Some((flag, (*value)?))) {
        command += &format!(" --{flag} {}", quote_for_shell(value));
    }
    copyable_command(command)
}
