//! What a recording contains: `recording.json`, and the folders of the kinds.

use std::collections::BTreeMap;
use std::path::Path;

use ::record::journal::{Command, Event, ProcessJournal};
use ::record::timeline::build_timeline;
use results::wire::{
    RECORDING_SCHEMA, RecordedCommand, RecordedKind, RecordedProcess, RecordedQueue, RecordedResource,
    RecordingRecord, UnrecordedCommand,
};

use super::masks::describe_scope;
use crate::exit::Failure;
use crate::output::create_folder;

/// Numbers of kinds in a recording, by process and number in the process.
pub type KindNumbers = BTreeMap<(u32, u64), u64>;

/// Numbers the kinds of all processes: those with equal hashes are one.
pub fn number_kinds(processes: &[ProcessJournal]) -> KindNumbers {
    let mut by_hash: BTreeMap<&str, u64> = BTreeMap::new();
    let mut numbers = KindNumbers::new();
    for process in processes {
        for event in &process.events {
            if let Event::Kind { kind, hash, .. } = event {
                let next = by_hash.len() as u64 + 1;
                numbers.insert((process.process, *kind), *by_hash.entry(hash).or_insert(next));
            }
        }
    }
    numbers
}

/// Returns true for a barrier without a layout transition.
fn is_barrier(command: &Command) -> bool {
    let Command::Barrier { layouts, .. } = command else { return false };
    layouts.is_none_or(|[old, new]| old == new)
}

/// Names a command in a few words.
pub fn describe_command(command: &Command, entry: Option<&str>) -> String {
    match command {
        Command::Dispatch { grid: Some([x, y, z]), .. } => {
            format!("dispatch of {x} × {y} × {z} workgroups of `{}`", entry.unwrap_or_default())
        }
        Command::Dispatch { grid: None, .. } => {
            format!("indirect dispatch of `{}`", entry.unwrap_or_default())
        }
        Command::Other(other) => other.what.clone(),
        Command::SetEvent { .. } => "signal of an event".to_owned(),
        Command::Barrier { from, to, .. } if is_barrier(command) => {
            format!("barrier from {} to {}", describe_scope(*from), describe_scope(*to))
        }
        Command::Barrier { is_subpass: true, .. } => "layout transition of a render pass".to_owned(),
        Command::Barrier { .. } => "layout transition".to_owned(),
        Command::Label { name } => format!("label {name}"),
        Command::EndLabel => "end of a label".to_owned(),
    }
}

/// Returns the entry point of a dispatch.
pub fn entry_of<'a>(process: &'a ProcessJournal, command: &Command) -> Option<&'a str> {
    let Command::Dispatch { kind: wanted, .. } = command else { return None };
    process.events.iter().find_map(|event| match event {
        Event::Kind { kind, entry, .. } if kind == wanted => Some(entry.as_str()),
        _ => None,
    })
}

/// Moves the folders of the kinds to `kinds/N`, and returns the record of the recording.
///
/// # Errors
/// If a folder cannot be moved.
pub fn write_recording(
    folder: &Path,
    processes: &[ProcessJournal],
    program: Vec<String>,
    (end, has_failed): (String, bool),
) -> Result<RecordingRecord, Failure> {
    let numbers = number_kinds(processes);
    let mut kinds: BTreeMap<u64, RecordedKind> = BTreeMap::new();
    let mut unrecorded: BTreeMap<String, u64> = BTreeMap::new();
    let mut dispatches = 0;
    let mut records = Vec::new();
    create_folder(&folder.join("kinds"))?;
    for process in processes {
        for event in &process.events {
            let Event::Kind { kind, module, entry, .. } = event else { continue };
            let Some(number) = numbers.get(&(process.process, *kind)) else { continue };
            let source = process.folder.join("kinds").join(kind.to_string());
            move_kind(&source, &folder.join("kinds").join(number.to_string()), process.process, *kind)
                .map_err(|error| Failure::file_error(&source, error))?;
            kinds.entry(*number).or_insert_with(|| RecordedKind {
                kind: *number,
                entry: entry.clone(),
                module: module.clone(),
                dispatches: 0,
                label: None,
                cases: Vec::new(),
                missing: Vec::new(),
            });
        }
        let timeline = build_timeline(&process.events);
        let mut commands = Vec::new();
        for (index, executed) in (0..).zip(&timeline.commands) {
            let mut number = None;
            match executed.command {
                Command::Dispatch { kind, missing, missing_contents, .. } => {
                    dispatches += 1;
                    number = numbers.get(&(process.process, *kind)).copied();
                    if let Some(kind) = number.and_then(|number| kinds.get_mut(&number)) {
                        kind.dispatches += 1;
                        kind.label = kind.label.take().or_else(|| executed.label.map(str::to_owned));
                        for input in missing.iter().chain(missing_contents) {
                            if !kind.missing.contains(&input.what) {
                                kind.missing.push(input.what.clone());
                            }
                        }
                    }
                }
                Command::Other(other) if other.unknown.is_some() => {
                    *unrecorded.entry(other.what.clone()).or_default() += 1;
                }
                Command::Other(_)
                | Command::SetEvent { .. }
                | Command::Barrier { .. }
                | Command::Label { .. }
                | Command::EndLabel => {}
            }
            let entry = number.and_then(|number| kinds.get(&number)).map(|kind| kind.entry.as_str());
            commands.push(RecordedCommand {
                index,
                queue: executed.queue,
                submission: executed.submission,
                what: describe_command(executed.command, entry),
                label: executed.label.map(str::to_owned),
                kind: number,
                is_barrier: is_barrier(executed.command),
            });
        }
        records.push(RecordedProcess {
            process: process.process,
            devices: process.events.iter().filter_map(device_name).collect(),
            queues: process.events.iter().filter_map(queue).collect(),
            resources: list_resources(&process.events),
            commands,
            is_truncated: process.is_truncated,
        });
    }
    // A kind has cases of several processes.
    for (number, kind) in &mut kinds {
        kind.cases = list_cases(folder, *number);
    }
    Ok(RecordingRecord {
        schema: RECORDING_SCHEMA.to_owned(),
        program,
        end,
        has_failed,
        processes: records,
        kinds: kinds.into_values().collect(),
        dispatches,
        unrecorded: unrecorded.into_iter().map(|(what, count)| UnrecordedCommand { what, count }).collect(),
    })
}

/// Moves the files of a kind of one process. A case gets a name that [`parse_case_name`] reads.
fn move_kind(source: &Path, target: &Path, process: u32, kind: u64) -> std::io::Result<()> {
    std::fs::create_dir_all(target)?;
    for entry in std::fs::read_dir(source)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let name = name.to_string_lossy();
        let name = match name.strip_prefix("case-") {
            Some(number) => format!("case-{process}-{kind}-{number}"),
            None => name.into_owned(),
        };
        std::fs::rename(&path, target.join(name))?;
    }
    std::fs::remove_dir(source)
}

/// Returns the process, the kind in that process, and the number of a case file.
pub fn parse_case_name(path: &Path) -> Option<(u32, u64, u64)> {
    let mut parts = path.file_stem()?.to_str()?.strip_prefix("case-")?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Lists the case files of a kind, relative to the recording.
fn list_cases(folder: &Path, kind: u64) -> Vec<String> {
    let path = folder.join("kinds").join(kind.to_string());
    let names = std::fs::read_dir(path).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let cases = names.filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "toml"));
    let mut cases: Vec<String> = cases.map(|name| format!("kinds/{kind}/{name}")).collect();
    cases.sort();
    cases
}

fn device_name(event: &Event) -> Option<String> {
    if let Event::Device { name, .. } = event { Some(name.clone()) } else { None }
}

fn queue(event: &Event) -> Option<RecordedQueue> {
    let Event::Queue { queue, family, index, .. } = *event else { return None };
    Some(RecordedQueue { queue, family, index })
}

fn list_resources(events: &[Event]) -> Vec<RecordedResource> {
    let names = resource_names(events);
    let resource = |event: &Event| {
        let (id, kind, size) = match event {
            Event::Buffer { buffer, size, .. } => (*buffer, "buffer", Some(*size)),
            Event::Image { image, .. } => (*image, "image", None),
            _ => return None,
        };
        let name = names.get(&id).map(|name| (*name).to_owned());
        Some(RecordedResource { id, kind: kind.to_owned(), name, size })
    };
    events.iter().filter_map(resource).collect()
}

/// Returns the names that the program gave its objects.
pub fn resource_names(events: &[Event]) -> BTreeMap<u64, &str> {
    let name = |event| match event {
        &Event::Name { object, ref name } => Some((object, name.as_str())),
        _ => None,
    };
    events.iter().filter_map(name).collect()
}
