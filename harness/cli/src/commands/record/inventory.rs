//! What a recording contains: `recording.json`, and the folders of the kinds.

use std::collections::BTreeMap;
use std::path::Path;

use ::record::hazard::ResourceId;
use ::record::journal::{Command, Event, ProcessJournal, SyncScope};
use ::record::timeline::build_timeline;
use campaign::recorded_contents::{EXTENSION, RAW_EXTENSION, compress_file};
use device::mask_names::{access_names, stage_names};
use results::wire::{
    RECORDING_SCHEMA, RecordedCommand, RecordedKind, RecordedProcess, RecordedQueue, RecordedResource,
    RecordingRecord, UnrecordedCommand,
};

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

/// Returns the names of all bits of a scope, as in `COMPUTE_SHADER (SHADER_WRITE)`.
fn describe_scope(scope: SyncScope) -> String {
    match (stage_names(scope.0), access_names(scope.1)) {
        (stages, _) if stages.is_empty() => "NONE".to_owned(),
        (stages, accesses) if accesses.is_empty() => stages,
        (stages, accesses) => format!("{stages} ({accesses})"),
    }
}

/// The digits of a module's hash that name it.
const HASH_DIGITS: usize = 8;

/// Words that cannot name a variable in the code of a fix.
const C_WORDS: [&str; 35] = [
    "auto", "break", "case", "char", "commands", "const", "continue", "default", "do", "double", "else",
    "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict",
    "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned",
    "void", "volatile", "while",
];

/// The names of the shaders and the resources of a process.
pub struct CommandNames<'a> {
    shaders: BTreeMap<u64, String>,
    objects: BTreeMap<u64, &'a str>,
    /// Numbers and sizes, for resources without a name.
    sizes: BTreeMap<u64, String>,
}

impl<'a> CommandNames<'a> {
    /// Collects the names.
    pub fn new(events: &'a [Event]) -> CommandNames<'a> {
        let mut names =
            CommandNames { shaders: BTreeMap::new(), objects: BTreeMap::new(), sizes: BTreeMap::new() };
        for event in events {
            match event {
                Event::Kind { kind, entry, name, module, .. } => {
                    let module = || format!("module {}", module.get(..HASH_DIGITS).unwrap_or(module));
                    let name = name.clone().unwrap_or_else(module);
                    names.shaders.insert(*kind, format!("`{entry}` of {name}"));
                }
                Event::Name { object, name } => _ = names.objects.insert(*object, name),
                Event::Buffer { buffer, size, .. } => {
                    names.sizes.insert(*buffer, format!("{buffer} of {size} bytes"));
                }
                Event::Image { image, size: [width, height, depth], .. } => {
                    let depth = if *depth > 1 { format!(" × {depth}") } else { String::new() };
                    names.sizes.insert(*image, format!("{image} of {width} × {height}{depth} texels"));
                }
                _ => {}
            }
        }
        names
    }

    /// Names a command in a few words.
    pub fn describe_command(&self, command: &Command) -> String {
        let shader = |kind: &u64| self.shaders.get(kind).map_or("", String::as_str);
        match command {
            Command::Dispatch { grid: Some([x, y, z]), kind, .. } => {
                format!("dispatch of {x} × {y} × {z} workgroups of {}", shader(kind))
            }
            Command::Dispatch { grid: None, kind, .. } => format!("indirect dispatch of {}", shader(kind)),
            Command::Other(other) => other.what.clone(),
            Command::SetEvent { .. } => "signal of an event".to_owned(),
            Command::Barrier(barrier) => match (barrier.transition(), barrier.subpasses) {
                (None, _) => {
                    format!("barrier from {} to {}", describe_scope(barrier.from), describe_scope(barrier.to))
                }
                (Some(_), None) => "layout transition".to_owned(),
                (Some(_), Some(_)) => "layout transition of a render pass".to_owned(),
            },
            Command::Label { name } => format!("label {name}"),
            Command::EndLabel => "end of a label".to_owned(),
            Command::Subpass { .. } => "subpass".to_owned(),
        }
    }

    /// Names a resource as a variable in C.
    pub fn identifier(&self, resource: ResourceId) -> String {
        let (ResourceId::Buffer(id) | ResourceId::Image(id)) = resource;
        let is_identifier = |name: &&&str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic())
                && name.chars().all(|other| other.is_ascii_alphanumeric() || other == '_')
                && !C_WORDS.contains(name)
        };
        let name = self.objects.get(&id).filter(is_identifier).map(|name| (*name).to_owned());
        name.unwrap_or_else(|| match resource {
            ResourceId::Buffer(id) => format!("buffer{id}"),
            ResourceId::Image(id) => format!("image{id}"),
        })
    }

    /// Names a resource; without a name, by its number and size.
    pub fn describe_resource(&self, resource: ResourceId) -> String {
        let (kind, id) = match resource {
            ResourceId::Buffer(id) => ("buffer", id),
            ResourceId::Image(id) => ("image", id),
        };
        match (self.objects.get(&id), self.sizes.get(&id)) {
            (Some(name), _) => format!("{kind} {name}"),
            (None, Some(size)) => format!("{kind} {size}"),
            (None, None) => format!("{kind} {id}"),
        }
    }
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
            let Event::Kind { kind, module, entry, name, .. } = event else { continue };
            let Some(number) = numbers.get(&(process.process, *kind)) else { continue };
            let source = process.folder.join("kinds").join(kind.to_string());
            move_kind(&source, &folder.join("kinds").join(number.to_string()), process.process, *kind)
                .map_err(|error| Failure::file_error(&source, error))?;
            kinds.entry(*number).or_insert_with(|| RecordedKind {
                kind: *number,
                entry: entry.clone(),
                name: name.clone(),
                module: module.clone(),
                ..RecordedKind::default()
            });
        }
        let timeline = build_timeline(&process.events);
        let names = CommandNames::new(&process.events);
        let mut commands = Vec::new();
        for (index, executed) in (0..).zip(&timeline.commands) {
            let mut number = None;
            if let Command::Dispatch { kind, missing, missing_contents, .. } = executed.command {
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
            } else if let Command::Other(other) = executed.command
                && other.unknown.is_some()
            {
                *unrecorded.entry(other.what.clone()).or_default() += 1;
            }
            commands.push(RecordedCommand {
                index,
                queue: executed.queue,
                submission: executed.submission,
                what: names.describe_command(executed.command),
                label: executed.label.map(str::to_owned),
                kind: number,
                is_barrier: matches!(executed.command, Command::Barrier(one) if one.transition().is_none()),
            });
        }
        records.push(RecordedProcess {
            process: process.process,
            devices: process.events.iter().filter_map(device_name).collect(),
            queues: process.events.iter().filter_map(queue).collect(),
            resources: list_resources(&process.events, &names),
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
        if path.extension().is_some_and(|extension| extension == RAW_EXTENSION) {
            compress_file(&path)?;
            std::fs::rename(path.with_extension(EXTENSION), target.join(&*name).with_extension(EXTENSION))?;
            continue;
        }
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

fn list_resources(events: &[Event], names: &CommandNames<'_>) -> Vec<RecordedResource> {
    let resource = |event: &Event| {
        let (id, kind, size) = match event {
            Event::Buffer { buffer, size, .. } => (*buffer, "buffer", Some(*size)),
            Event::Image { image, .. } => (*image, "image", None),
            _ => return None,
        };
        let name = names.objects.get(&id).map(|name| (*name).to_owned());
        Some(RecordedResource { id, kind: kind.to_owned(), name, size })
    };
    events.iter().filter_map(resource).collect()
}
