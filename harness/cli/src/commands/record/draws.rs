//! The accesses of draws that their shaders can make.
//!
//! The layer lists all that the descriptors of a draw name. Accesses that no shader of the draw can make are removed. A draw whose
//! shaders write nothing but attachments has known accesses: its reads are a superset, and its invocations do not race.

use std::collections::BTreeMap;
use std::path::Path;

use ::record::journal::{Command, DrawShader, Event, OtherCommand, ProcessJournal, read_journals};
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
        for event in &mut process.events {
            let Event::Commands { list, .. } = event else { continue };
            for command in list {
                if let Command::Other(draw) = command {
                    resolve_draw(&folder, &mut known, draw);
                }
            }
        }
    }
    Ok(processes)
}

fn resolve_draw(modules: &Path, known: &mut KnownShaders, draw: &mut OtherCommand) {
    let Some(shaders) = &draw.shaders else { return };
    for DrawShader(_, module, entry) in shaders {
        let read = || read_shader(&modules.join(format!("{module}.spv")), entry);
        known.entry((module.clone(), entry.clone())).or_insert_with(read);
    }
    let by_stage = shaders.iter().map(|DrawShader(stage, module, entry)| {
        Some((*stage, known.get(&(module.clone(), entry.clone()))?.as_ref()?))
    });
    let Some(by_stage) = by_stage.collect::<Option<BTreeMap<u64, &EntryAccesses>>>() else {
        draw.is_partial = true;
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
    draw.is_partial |= by_stage.values().any(|shader| shader.has_addresses)
        || draw.accesses.iter().any(|access| access.place.is_some() && access.is_write);
}

fn read_shader(path: &Path, entry: &str) -> Option<EntryAccesses> {
    let module = inputs::read_bound_module(&std::fs::read(path).ok()?, &AnalysisOptions::default()).ok()?;
    entry_accesses(&module, entry)
}
