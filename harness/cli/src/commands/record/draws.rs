//! The accesses of draws that their shaders can make.
//!
//! The layer lists all that the descriptors of a draw or dispatch name. What no shader of it can access is removed. A draw whose
//! invocations access by atomic operations alone what they write has known accesses: they are a superset, and its invocations do not race.

use std::collections::BTreeMap;
use std::path::Path;

use ::record::hazard::ResourceId;
use ::record::journal::{
    Command, DrawShader, Event, OtherCommand, ProcessJournal, RecordedAccess, read_journals,
};
use entry_point::{AnalysisOptions, inputs};
use spirv_reader::GlobalVariable;
use walk::{EntryAccesses, entry_accesses};

use super::PROCESS_FOLDER;
use crate::exit::Failure;

/// The accesses that a shader can make, and the names of its resources.
struct KnownShader {
    accesses: EntryAccesses,
    names: BTreeMap<(u32, u32), String>,
}

/// Shaders by the hash of their module and their entry point; `None` if the module cannot be read.
type KnownShaders = BTreeMap<(String, String), Option<KnownShader>>;

/// Reads the journals of a recording, with the accesses that draws can have.
///
/// # Errors
/// As for [`read_journals`].
pub fn read_processes(recording: &Path) -> Result<Vec<ProcessJournal>, Failure> {
    let mut processes = read_journals(&recording.join(PROCESS_FOLDER)).map_err(Failure::input_error)?;
    for process in &mut processes {
        let (mut known, folder) = (KnownShaders::new(), process.folder.join("modules"));
        let mut names: BTreeMap<u64, String> = BTreeMap::new();
        let kind_shader = |event: &Event| match event {
            Event::Kind { kind, module, entry, .. } => Some((*kind, (module.clone(), entry.clone()))),
            _ => None,
        };
        let kinds: BTreeMap<u64, _> = process.events.iter().filter_map(kind_shader).collect();
        for event in &mut process.events {
            let Event::Commands { list, .. } = event else { continue };
            for command in list {
                if let Command::Other(draw) = command {
                    resolve_draw(&folder, &mut known, draw);
                } else if let Command::Dispatch { kind, missing, missing_contents, resources, .. } = command
                    && let Some((module, entry)) = kinds.get(kind)
                    && let Some(shader) = known_shader(&folder, &mut known, module, entry)
                {
                    for resource in resources {
                        let place = resource.set.zip(resource.binding);
                        if let Some(name) = place.and_then(|place| shader.names.get(&place))
                            && let Some(ResourceId::Buffer(id) | ResourceId::Image(id)) = resource.id()
                        {
                            names.entry(id).or_insert_with(|| name.clone());
                        }
                    }
                    let is_declared = |place| shader.accesses.resources.contains_key(&place);
                    for inputs in [missing, missing_contents] {
                        inputs.retain(|input| input.place.is_none_or(is_declared));
                    }
                }
            }
        }
        // The names that the program gives come last, and count.
        let names = names.into_iter().map(|(object, name)| Event::Name { object, name });
        process.events.splice(0..0, names);
    }
    Ok(processes)
}

fn resolve_draw(modules: &Path, known: &mut KnownShaders, draw: &mut OtherCommand) {
    let Some(shaders) = &draw.shaders else { return };
    for DrawShader(_, module, entry) in shaders {
        known_shader(modules, known, module, entry);
    }
    let by_stage = shaders.iter().map(|DrawShader(stage, module, entry)| {
        Some((*stage, &known.get(&(module.clone(), entry.clone()))?.as_ref()?.accesses))
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
) -> &'k Option<KnownShader> {
    let read = || read_shader(&modules.join(format!("{module}.spv")), entry);
    known.entry((module.to_owned(), entry.to_owned())).or_insert_with(read)
}

fn read_shader(path: &Path, entry: &str) -> Option<KnownShader> {
    let module = inputs::read_bound_module(&std::fs::read(path).ok()?, &AnalysisOptions::default()).ok()?;
    let name = |(id, variable): (&u32, &GlobalVariable)| {
        let name = module.source_name_of_variable(*id, variable.ty)?;
        Some((module.descriptor_of(*id)?, name.to_owned()))
    };
    let names = module.variables.iter().filter_map(name).collect();
    Some(KnownShader { accesses: entry_accesses(&module, entry)?, names })
}
