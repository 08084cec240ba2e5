//! The accesses of draws that their shaders can make.
//!
//! The layer lists all that the descriptors of a draw or dispatch name. What no shader of it can access is removed. A draw whose
//! invocations access by atomic operations alone what they write has known accesses: they are a superset, and its invocations do not race.

use std::collections::BTreeMap;
use std::path::Path;

use ::record::journal::{
    Command, DrawShader, Event, OtherCommand, ProcessJournal, RecordedAccess, read_journals,
};
use entry_point::{AnalysisOptions, inputs};
use walk::{EntryAccesses, entry_accesses};

use super::PROCESS_FOLDER;
use crate::exit::Failure;

/// The accesses of shaders, by the hash of their module and their entry point; `None` if the module cannot be read.
type KnownShaders = BTreeMap<(String, String), Option<EntryAccesses>>;

/// Reads the journals of a recording, with the accesses that draws can have.
///
/// # Errors
/// As for [`read_journals`].
pub fn read_processes(recording: &Path) -> Result<Vec<ProcessJournal>, Failure> {
    let mut processes = read_journals(&recording.join(PROCESS_FOLDER)).map_err(Failure::input_error)?;
    for process in &mut processes {
        let (mut known, folder) = (KnownShaders::new(), process.folder.join("modules"));
        let kind_shader = |event: &Event| match event {
            Event::Kind { kind, module, entry, .. } => Some((*kind, (module.clone(), entry.clone()))),
            _ => None,
        };
        let kinds: BTreeMap<u64, _> = process.events.iter().filter_map(kind_shader).collect();
        for event in &mut process.events {
            let Event::Commands { list, .. } = event else { continue };
            for command in list {
                match command {
                    Command::Other(draw) => resolve_draw(&folder, &mut known, draw),
                    Command::Dispatch { kind, missing, missing_contents, .. } => {
                        let Some((module, entry)) = kinds.get(kind) else { continue };
                        let declared = known_shader(&folder, &mut known, module, entry);
                        let Some(declared) = declared.as_ref().map(|shader| &shader.resources) else {
                            continue;
                        };
                        for inputs in [missing, missing_contents] {
                            inputs.retain(|input| {
                                input.place.is_none_or(|place| declared.contains_key(&place))
                            });
                        }
                    }
                    Command::SetEvent { .. }
                    | Command::Barrier { .. }
                    | Command::Label { .. }
                    | Command::EndLabel => {}
                }
            }
        }
    }
    Ok(processes)
}

fn resolve_draw(modules: &Path, known: &mut KnownShaders, draw: &mut OtherCommand) {
    let Some(shaders) = &draw.shaders else { return };
    for DrawShader(_, module, entry) in shaders {
        known_shader(modules, known, module, entry);
    }
    let by_stage = shaders.iter().map(|DrawShader(stage, module, entry)| {
        Some((*stage, known.get(&(module.clone(), entry.clone()))?.as_ref()?))
    });
    let Some(by_stage) = by_stage.collect::<Option<BTreeMap<u64, &EntryAccesses>>>() else {
        draw.unknown = Some("the module of a shader cannot be read".to_owned());
        return;
    };
    draw.accesses.retain(|access| {
        if let Some(location) = access.location {
            return by_stage.values().any(|shader| shader.inputs.contains(&location));
        }
        let Some(place) = access.place else { return true };
        let may_write = by_stage.get(&access.stage).and_then(|shader| shader.resources.get(&place));
        may_write.is_some_and(|may_write| *may_write || !access.is_write)
    });
    let resource = |access: &RecordedAccess| (access.buffer, access.image);
    let is_write = |access: &&RecordedAccess| access.place.is_some() && access.is_write;
    let written: Vec<_> = draw.accesses.iter().filter(is_write).map(resource).collect();
    let is_atomic = |access: &RecordedAccess| {
        access.place.is_some_and(|place| {
            by_stage.get(&access.stage).is_some_and(|shader| !shader.plain.contains(&place))
        })
    };
    let mut plain = draw.accesses.iter().filter(|access| !is_atomic(access));
    if by_stage.values().any(|shader| shader.has_addresses) {
        draw.unknown = Some("its shaders access memory by address".to_owned());
    } else if let Some(access) = plain.find(|access| written.contains(&resource(access))) {
        let place = access.place.map_or("a vertex or index buffer".to_owned(), |(set, binding)| {
            format!("set {set}, binding {binding}")
        });
        let shader = shaders.iter().find(|DrawShader(stage, ..)| *stage == access.stage);
        let hint = shader.map_or(String::new(), |DrawShader(_, module, entry)| {
            let file = modules.join(format!("{module}.spv"));
            format!(": vk-litmus race --entry {entry} {} tries some", file.display())
        });
        draw.unknown = Some(format!(
            "its shaders write {place}, which they access other than by atomic operations; which of its invocations do \
             is not computed{hint}"
        ));
    }
}

fn known_shader<'k>(
    modules: &Path,
    known: &'k mut KnownShaders,
    module: &str,
    entry: &str,
) -> &'k Option<EntryAccesses> {
    let read = || read_shader(&modules.join(format!("{module}.spv")), entry);
    known.entry((module.to_owned(), entry.to_owned())).or_insert_with(read)
}

fn read_shader(path: &Path, entry: &str) -> Option<EntryAccesses> {
    let module = inputs::read_bound_module(&std::fs::read(path).ok()?, &AnalysisOptions::default()).ok()?;
    entry_accesses(&module, entry)
}
