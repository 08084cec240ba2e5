//! Shell completion: the shell runs this program, which completes tests, suites, models, devices, faults and
//! variants.

use std::ffi::OsStr;

use clap::Command;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use litmus::corpus;
use model::Model;
use runner::RunVariant;
use sim::FAULTS;

use crate::help;

/// Environment variable through which a shell requests completions.
const REQUEST_VARIABLE: &str = "VK_LITMUS_COMPLETE";
/// Name of the program.
const PROGRAM: &str = "vk-litmus";
/// Device names that need no driver.
const DEVICES: [&str; 4] = ["gpu", "lavapipe", "swiftshader", "sim"];

/// Answers a completion request of a shell and exits; returns if there is none.
pub fn answer_request() {
    CompleteEnv::with_factory(command).var(REQUEST_VARIABLE).complete();
}

/// Returns the script that registers completion; `None` for a shell that does not support it.
pub fn registration_script(shell: &str) -> Option<String> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(shell)?;
    completer.write_registration(REQUEST_VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script).ok()?;
    String::from_utf8(script).ok()
}

/// Returns the command line with completers for its arguments.
fn command() -> Command {
    let is_hidden = |command: &Command| command.is_hide_set();
    help::command().mut_subcommands(|command| {
        if is_hidden(&command) {
            return command;
        }
        command.mut_args(|argument| match argument.get_id().as_str() {
            "test" | "tests" => argument.add(ArgValueCompleter::new(complete_tests)),
            "suite" => argument.add(ArgValueCandidates::new(complete_suites)),
            "model" => argument.add(ArgValueCompleter::new(complete_models)),
            "device" => argument.add(ArgValueCandidates::new(complete_devices)),
            "fault" => argument.add(ArgValueCandidates::new(complete_faults)),
            "variant" => argument.add(ArgValueCandidates::new(complete_variants)),
            "stress" => argument.add(ArgValueCompleter::new(complete_stresses)),
            _ => argument,
        })
    })
}

fn candidates<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<CompletionCandidate> {
    words.into_iter().map(CompletionCandidate::new).collect()
}

/// Completes with matching words and with files.
fn complete_with_files<'a>(
    current: &OsStr,
    words: impl IntoIterator<Item = &'a str>,
) -> Vec<CompletionCandidate> {
    let typed = current.to_str().unwrap_or_default();
    let mut found = candidates(words.into_iter().filter(|word| word.starts_with(typed)));
    found.extend(PathCompleter::any().complete(current));
    found
}

/// Completes families first, then their tests; after an `@`, variants.
fn complete_tests(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_str().unwrap_or_default();
    if let Some((id, variant)) = typed.split_once('@') {
        let (before, word) = variant
            .rsplit_once('.')
            .map_or((String::new(), variant), |(before, word)| (format!("{before}."), word));
        let words = RunVariant::words().filter(|known| known.starts_with(word));
        return words.map(|known| CompletionCandidate::new(format!("{id}@{before}{known}"))).collect();
    }
    let ids = campaign::inputs::embedded_tests().into_iter().map(|source| source.id);
    let mut words: Vec<String> = ids
        .filter(|id| id.starts_with(typed))
        .map(|id| match id.get(typed.len()..).and_then(|rest| rest.find('/')) {
            Some(end) => id.get(..=typed.len() + end).unwrap_or(&id).to_owned(),
            None => id,
        })
        .collect();
    words.dedup();
    complete_with_files(current, words.iter().map(String::as_str))
}

fn complete_suites() -> Vec<CompletionCandidate> {
    candidates(corpus::suites().iter().map(|suite| suite.id.as_str()).chain([corpus::PROGRESS_SUITE]))
}

fn complete_models(current: &OsStr) -> Vec<CompletionCandidate> {
    complete_with_files(current, Model::shipped_models().iter().map(|(name, _)| *name))
}

fn complete_stresses(current: &OsStr) -> Vec<CompletionCandidate> {
    complete_with_files(current, runner::Stress::preset_names())
}

/// Only names known without a driver: loading drivers would delay the shell.
fn complete_devices() -> Vec<CompletionCandidate> {
    let chips = vendor::VENDORS.iter().flat_map(|vendor| {
        vendor.families.iter().map(move |family| format!("{}:{}", vendor.selector_prefix, family.name))
    });
    let mut found = candidates(DEVICES);
    found.extend(chips.map(CompletionCandidate::new));
    found
}

fn complete_faults() -> Vec<CompletionCandidate> {
    candidates(FAULTS.iter().map(|row| row.name))
}

fn complete_variants() -> Vec<CompletionCandidate> {
    candidates(RunVariant::words())
}
