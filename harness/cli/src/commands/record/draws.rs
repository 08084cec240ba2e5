//! The accesses of draws that their shaders can make.
//!
//! The layer lists all that the descriptors of a draw or dispatch name. What no shader of it can access is removed. A walk of all vertices
//! finds the bytes of buffers that they access, unless attributes or contents decide that. A draw whose
//! invocations access by atomic operations alone what they write has known accesses: they are a superset, and its invocations do not race.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ::record::hazard::ResourceId;
use ::record::journal::{
    Command, DrawShader, Event, OtherCommand, ProcessJournal, RecordedAccess, read_journals,
};
use entry_point::{AnalysisOptions, inputs};
use results::wire::RaceVerdict;
use spirv_reader::GlobalVariable;
use vk_litmus::{RaceDetector, ShaderInputs, ShaderModule};
use walk::{AccessedBytes, EntryAccesses, accessed_bytes, entry_accesses};

use super::PROCESS_FOLDER;
use crate::exit::Failure;

/// `VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT`.
const VERTEX: u64 = 1 << 3;

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
        let pointed = |event: &Event| match event {
            Event::Case { kind, case, pointed, .. } => Some(((*kind, *case), pointed.clone())),
            _ => None,
        };
        let pointed: BTreeMap<(u64, u64), _> = process.events.iter().filter_map(pointed).collect();
        for event in &mut process.events {
            let Event::Commands { list, .. } = event else { continue };
            for command in list {
                if let Command::Other(draw) = command {
                    resolve_draw(&folder, &mut known, draw);
                } else if let Command::Dispatch { kind, case, missing, missing_contents, resources, .. } =
                    command
                    && let Some((module, entry)) = kinds.get(kind)
                    && let Some(shader) = known_shader(&folder, &mut known, module, entry)
                {
                    let named = case.and_then(|case| pointed.get(&(*kind, case)));
                    resources.extend(named.into_iter().flatten().copied());
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
    for DrawShader(_, module, entry, _) in shaders {
        known_shader(modules, known, module, entry);
    }
    let by_stage = shaders.iter().map(|DrawShader(stage, module, entry, _)| {
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
    let all = draw.accesses.clone();
    let has_atomics_alone = |access: &RecordedAccess| {
        access.place.is_some_and(|place| {
            by_stage.get(&access.stage).is_some_and(|shader| !shader.plain.contains(&place))
        })
    };
    let plain: Vec<_> = all.iter().filter(|access| !has_atomics_alone(access)).collect();
    let has_addresses = by_stage.values().any(|shader| shader.has_addresses);
    let has_clean_vertices = walk_vertices(modules, draw);
    let Some(shaders) = &draw.shaders else { return };
    let resource = |access: &RecordedAccess| (access.buffer, access.image);
    let is_write = |access: &&RecordedAccess| access.place.is_some() && access.is_write;
    let written: Vec<_> = all.iter().filter(is_write).map(resource).collect();
    // Accesses of other stages may race with those of vertices.
    let is_judged = |access: &RecordedAccess| {
        let is_vertex = |one: &RecordedAccess| one.stage == VERTEX && one.place.is_some();
        has_clean_vertices && all.iter().filter(|one| resource(one) == resource(access)).all(is_vertex)
    };
    if has_addresses {
        draw.unknown = Some("its shaders access memory by address".to_owned());
    } else if let Some(access) =
        plain.iter().find(|access| written.contains(&resource(access)) && !is_judged(access))
    {
        let place = access.place.map_or("a vertex or index buffer".to_owned(), |(set, binding)| {
            format!("set {set}, binding {binding}")
        });
        let shader = shaders.iter().find(|DrawShader(stage, ..)| *stage == access.stage);
        let hint = shader.map_or(String::new(), |DrawShader(_, module, entry, _)| {
            let file = modules.join(format!("{module}.spv"));
            format!(": vk-litmus race --entry {entry} {} tries some", file.display())
        });
        draw.unknown = Some(format!(
            "its shaders write {place}, which they access other than by atomic operations; which of its invocations do \
             is not computed{hint}"
        ));
    }
}

/// Replaces the possible accesses of vertices to buffers by those that a walk finds, if attributes and contents do not decide them. Returns
/// true if the vertices do not race with each other, either.
fn walk_vertices(modules: &Path, draw: &mut OtherCommand) -> bool {
    const MAX_BYTES: u64 = 1 << 24;
    const MAX_STEPS: u64 = 1_000_000;
    let is_vertex = |access: &RecordedAccess| access.stage == VERTEX && access.place.is_some();
    let is_written = draw.accesses.iter().any(|access| is_vertex(access) && access.is_write);
    let shader = draw.shaders.iter().flatten().find(|shader| shader.0 == VERTEX);
    // The last vertices may belong to no primitive.
    let vertices = draw.vertices.filter(|[count, _]| is_written && count % 3 == 0);
    let (Some([count, instances]), Some(DrawShader(_, module, entry, constants))) = (vertices, shader) else {
        return false;
    };
    let answer = || -> Option<(AccessedBytes, bool)> {
        let code = std::fs::read(modules.join(format!("{module}.spv"))).ok()?;
        let mut case =
            format!("entry = {entry:?}\ngrid = [{count}, {instances}, 1]\nspec = {{{constants} }}\n");
        let mut resources = BTreeMap::new();
        for access in draw.accesses.iter().filter(|access| is_vertex(access)) {
            let (place, size) = (access.place?, access.bytes.1.saturating_sub(access.bytes.0).min(MAX_BYTES));
            // Elements of arrays have one place.
            let resource = (access.buffer?, access.bytes);
            match resources.insert(place, resource) {
                None => case += &format!("[buffer.\"{}.{}\"]\nbytes = {size}\n", place.0, place.1),
                Some(other) => (other == resource).then_some(())?,
            }
        }
        let read_file = |name: &str| Err(name.to_owned());
        let options = inputs::parse_case_file(&case, &read_file).ok()?.options;
        let decoded = inputs::read_bound_module(&code, &options).ok()?;
        // The constants that the draw pushes are not recorded.
        entry_accesses(&decoded, entry).filter(|known| !known.has_push_constants)?;
        let bytes = accessed_bytes(&decoded, &options, MAX_STEPS).ok()?;
        let is_known = bytes.is_complete && bytes.is_fixed();
        let inputs = ShaderInputs::from_case(&case, &read_file).ok()?;
        let detector = RaceDetector::new().ok()?.skip_proofs().time_limit(Duration::from_secs(2));
        let races = detector.find_races(&ShaderModule::from_spirv(module, code), &inputs);
        is_known.then(|| (bytes, races.iter().all(|found| found.line.verdict == RaceVerdict::Clean)))
    };
    let Some((bytes, is_clean)) = answer() else { return false };
    let exact = |access: RecordedAccess| {
        let place = access.place.filter(|_| is_vertex(&access));
        let found = place.map(|(set, binding)| bytes.bindings.get(&(set, binding, 0)));
        let Some(found) = found else { return vec![access] };
        let ranges = found.map(|found| if access.is_write { &found.writes } else { &found.reads });
        let (start, end) = access.bytes;
        let one = |(from, to): &(u64, u64)| RecordedAccess {
            bytes: (start.saturating_add(*from), end.min(start.saturating_add(*to))),
            is_possible: false,
            ..access
        };
        ranges.into_iter().flatten().map(one).collect()
    };
    draw.accesses = std::mem::take(&mut draw.accesses).into_iter().flat_map(exact).collect();
    is_clean
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
