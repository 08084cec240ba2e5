//! Converts a litmus test, its kernels and their machine code to a question for the explorer.
//!
//! It determines the memory of each descriptor, the running waves, and the allowed outcomes. The model's
//! prediction and the compiler's output meet here as plain data.

use std::collections::BTreeSet;

use isa::question::{
    DescriptorTarget, DispatchBarrier, InitialMemory, MachineKernel, MemorySpace, MemoryWord, ObservedWord,
    Resource, Workgroup,
};
use isa::{AmdFamily, MachineProgram as Text, MachineQuestion};
use litmus::{Observable, Prediction, ScalarType, Test, ThreadId, ThreadPlace, Value};
use shaders::carrier::Carrier;
use shaders::contract::IMAGE_WIDTH;
use shaders::variant::ImageForm;
use shaders::{Binding, Parameters, Program, ResultSlot};
use vendor::DescriptorLayout;

/// The location buffer and its aliases.
const LOCATIONS: MemorySpace = MemorySpace(0);
const RESULTS: MemorySpace = MemorySpace(1);
const RENDEZVOUS: MemorySpace = MemorySpace(2);
const IMAGES: MemorySpace = MemorySpace(3);
const SCRATCH: MemorySpace = MemorySpace(4);
/// The second location buffer and its images.
const SEPARATE_LOCATIONS: MemorySpace = MemorySpace(5);
const SEPARATE_IMAGES: MemorySpace = MemorySpace(6);

/// The kernels of a test with their machine code.
pub struct CompiledKernels<'a> {
    pub test: &'a Test,
    /// Its kernels, with the parameters of one round.
    pub program: &'a Program,
    /// Their machine code, in program order.
    pub programs: &'a [Text],
    pub family: &'a AmdFamily,
    /// The driver's descriptor layout.
    pub descriptors: DescriptorLayout,
    /// The number of lanes of a wave.
    pub subgroup_size: u32,
}

/// A feature that the machine does not model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnmodelledFeature {
    /// Some storages are in a different kind of memory, and both kinds are accessed by address.
    #[error("two memories accessed by address")]
    TwoAddresses,
    /// Kernels of graphics stages.
    #[error("graphics stages")]
    GraphicsStages,
    /// Calls that barriers between whole dispatches do not express.
    #[error("calls that no barrier between dispatches expresses")]
    ApiCalls,
    /// The prediction was cut short, so no outcome is known to be forbidden.
    #[error("the prediction is not complete")]
    IncompletePrediction,
    #[error("a host thread")]
    HostThread,
    /// Subgroup operations: other lanes of a wave belong to other instances and take part in them.
    #[error("operations of a subgroup")]
    SubgroupOperations,
    /// Threads name more subgroups than the workgroup has waves.
    #[error("more subgroups than waves")]
    TooManySubgroups,
    #[error("an observable that no kernel reports")]
    UnreportedObservable,
    #[error("{texts} texts for {kernels} kernels")]
    Texts { texts: usize, kernels: usize },
}

/// Returns the question whether outcomes outside of the prediction are reachable.
///
/// # Errors
///
/// A feature that the machine does not model.
pub fn machine_question(
    compiled: &CompiledKernels<'_>,
    prediction: &Prediction,
) -> Result<MachineQuestion, UnmodelledFeature> {
    let CompiledKernels { test, program, programs: texts, family, .. } = *compiled;
    if !program.separate_storages().is_empty() && program.kernels().any(|kernel| kernel.uses_addresses) {
        return Err(UnmodelledFeature::TwoAddresses);
    }
    if program.calls_only.is_some() {
        return Err(UnmodelledFeature::ApiCalls);
    }
    // Host accesses and their timing are not in the text.
    if !test.threads.iter().all(|thread| matches!(thread.place, ThreadPlace::Device(_))) {
        return Err(UnmodelledFeature::HostThread);
    }
    if test.has_tangles() {
        return Err(UnmodelledFeature::SubgroupOperations);
    }
    if program.kernels().any(|kernel| kernel.carrier != Carrier::Compute) {
        return Err(UnmodelledFeature::GraphicsStages);
    }
    if !prediction.complete {
        return Err(UnmodelledFeature::IncompletePrediction);
    }
    let parts = program.phases.iter().enumerate();
    let parts = parts.flat_map(|(dispatch, phase)| phase.kernels.iter().map(move |part| (dispatch, part)));
    let count = parts.clone().count();
    if texts.len() != count {
        return Err(UnmodelledFeature::Texts { texts: texts.len(), kernels: count });
    }
    // Nothing precedes the first one.
    let barriers = program.phases.iter().skip(1).map(|phase| DispatchBarrier {
        visible: phase.dependency.visible.names().map(str::to_owned).collect(),
    });
    let mut kernels = Vec::new();
    let mut workgroups = Vec::new();
    for (kernel_index, ((dispatch, part), text)) in parts.zip(texts).enumerate() {
        let kernel = &part.kernel;
        let targets: Vec<DescriptorTarget> = kernel
            .bindings
            .iter()
            .map(|binding| {
                DescriptorTarget::Buffer(match binding {
                    Binding::Locations => LOCATIONS,
                    Binding::SeparateLocations => SEPARATE_LOCATIONS,
                    Binding::Results | Binding::Claims => RESULTS,
                    Binding::Rendezvous => RENDEZVOUS,
                    Binding::Scratch => SCRATCH,
                })
            })
            .chain(kernel.images.iter().map(|image| match image.shape {
                ImageForm::TexelBuffer => {
                    DescriptorTarget::Texels(if image.is_separate { SEPARATE_LOCATIONS } else { LOCATIONS })
                }
                ImageForm::TwoDimensional => {
                    DescriptorTarget::Image { space: image_space(image.is_separate), row: IMAGE_WIDTH }
                }
                ImageForm::OneDimensional => {
                    DescriptorTarget::Image { space: image_space(image.is_separate), row: 0 }
                }
            }))
            .collect();
        kernels.push(MachineKernel {
            program: text.clone(),
            resources: Resource::lay_out(&targets, compiled.descriptors),
            address_space: kernel.uses_addresses.then_some(LOCATIONS),
        });
        for (id, threads) in kernel.roles.classes.iter().enumerate() {
            let test_thread = |local: &ThreadId| part.threads.get(usize::from(local.0)).copied();
            let threads: Vec<ThreadId> = threads.iter().filter_map(test_thread).collect();
            let waves = if kernel.requirements.subgroup_size.is_some() {
                let count = kernel.workgroup_size.div_ceil(compiled.subgroup_size) as usize;
                wave_lanes(test, &threads, kernel.lanes, count)?
            } else {
                vec![vec![0]]
            };
            workgroups.push(Workgroup {
                kernel: kernel_index,
                dispatch,
                id: id as u32,
                wave_size: compiled.subgroup_size,
                waves,
            });
        }
    }

    let parameters = Parameters::SINGLE;
    let storage_offset = |storage: u32| parameters.unit_index(0, storage) * 4 * program.storage_words.max(1);
    let in_image = program.image_storages();
    let storage_word = |storage: u32, byte_offset: u32, bytes: u8| {
        let space = match (in_image.contains(&storage), program.separate_storages().contains(&storage)) {
            // An image has a texel for every word of the location buffer.
            (true, apart) => image_space(apart),
            (false, true) => SEPARATE_LOCATIONS,
            (false, false) => LOCATIONS,
        };
        MemoryWord { space, offset: storage_offset(storage) + byte_offset, bytes }
    };
    let mut initial = Vec::new();
    for (storage, value) in (0..).zip(&program.initial_values) {
        let words = if in_image.contains(&storage) { 1 } else { program.storage_words.max(1) };
        let word = |number: u32| InitialMemory {
            word: storage_word(storage, 4 * number, 4),
            value: (value >> (32 * number)) as u64 & 0xffff_ffff,
        };
        initial.extend((0..words.min(4)).map(word));
    }
    let result_word = |number: usize, bytes| {
        let word = parameters.result_word(program.lanes, number as u32, 0);
        MemoryWord { space: RESULTS, offset: 4 * word, bytes }
    };

    let mut columns = Vec::new();
    let mut observed = Vec::new();
    for (position, observable) in prediction.observables.iter().enumerate() {
        let scalar = test.observable_type(*observable);
        let bytes = scalar.bytes() as u8;
        let slot_position = |wanted: ResultSlot| program.results.iter().position(|known| *known == wanted);
        if let Some(low_slot) = slot_position(ResultSlot::Register(*observable)) {
            observed.push(ObservedWord { word: result_word(low_slot, bytes.min(4)), required: None });
            columns.push((position, 0, bytes.min(4), false));
            if bytes == 8 {
                let high_slot = slot_position(ResultSlot::High(*observable))
                    .ok_or(UnmodelledFeature::UnreportedObservable)?;
                observed.push(ObservedWord { word: result_word(high_slot, 4), required: None });
                columns.push((position, 32, 4, false));
            }
        } else {
            let known = program.final_values.iter().find(|(known, _)| known == observable);
            let (_, storage) = known.ok_or(UnmodelledFeature::UnreportedObservable)?;
            let component_offset = match observable {
                Observable::Location(_, component) => u32::from(*component) * scalar.bytes(),
                Observable::Register(..) => 0,
            };
            observed
                .push(ObservedWord { word: storage_word(*storage, component_offset, bytes), required: None });
            columns.push((position, 0, bytes, scalar == ScalarType::F32));
        }
    }
    let completion_slots =
        program.results.iter().enumerate().filter(|(_, slot)| matches!(slot, ResultSlot::Done(_)));
    for (number, _) in completion_slots {
        observed
            .push(ObservedWord { word: result_word(number, 4), required: Some(u64::from(parameters.done)) });
    }
    let allowed: BTreeSet<Vec<u64>> = prediction
        .outcomes
        .iter()
        .filter(|(_, outcome)| outcome.allowed)
        .map(|(outcome, _)| {
            let bits = |(position, shift, bytes, float): &(usize, u32, u8, bool)| {
                let Value(value) = outcome.0.get(*position).copied().unwrap_or(Value(0));
                if *float {
                    return u64::from((value as u32 as i32 as f32).to_bits());
                }
                let mask = if *bytes == 8 { u64::MAX } else { (1 << (8 * u32::from(*bytes))) - 1 };
                (value >> shift) & mask
            };
            let mut values: Vec<u64> = columns.iter().map(bits).collect();
            values.resize(observed.len(), u64::from(parameters.done));
            values
        })
        .collect();
    Ok(MachineQuestion {
        family: family.clone(),
        kernels,
        workgroups,
        barriers: barriers.collect(),
        initial_memory: initial,
        observed,
        allowed_outcomes: allowed,
    })
}

fn image_space(apart: bool) -> MemorySpace {
    if apart { SEPARATE_IMAGES } else { IMAGES }
}

/// Returns the lanes of each wave that belong to threads of the instance.
///
/// Subgroups are in the order in which threads first name them; within one, each thread has an equal share.
fn wave_lanes(
    test: &Test,
    threads: &[ThreadId],
    lanes: u32,
    waves: usize,
) -> Result<Vec<Vec<u8>>, UnmodelledFeature> {
    let mut subgroups: Vec<u32> = Vec::new();
    let mut lanes_of_wave: Vec<Vec<u8>> = vec![Vec::new(); waves];
    for thread in threads {
        let ThreadPlace::Device(place) = test.thread(*thread).place else {
            return Err(UnmodelledFeature::HostThread);
        };
        let number = subgroups.iter().position(|known| *known == place.subgroup).unwrap_or_else(|| {
            subgroups.push(place.subgroup);
            subgroups.len() - 1
        });
        let wave = lanes_of_wave.get_mut(number).ok_or(UnmodelledFeature::TooManySubgroups)?;
        wave.push((wave.len() as u32 * lanes) as u8);
    }
    for wave in &mut lanes_of_wave {
        // A wave without a thread still takes part in barriers.
        if wave.is_empty() {
            wave.push(0);
        }
    }
    Ok(lanes_of_wave)
}

#[cfg(test)]
mod tests {

    use litmus::Race;
    use shaders::variant::SeparateStorages;
    use shaders::{KernelConfig, Pipelines, Variant};

    use super::*;

    #[test]
    fn unsupported_features_are_refused_by_name() {
        let default_variant = Variant::default();
        let separate_variant = Variant { separate_storages: SeparateStorages::Payload, ..default_variant };
        let one = "P0@sg 0, wg 0, qf 0";
        let calls = "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 | P2@sg 0, wg 2, qf 0 ; ld.sc0 r0, w | st.sc0 v, 1 | await e ;
             set e compute:shader_write -> compute:shader_read | | ld.sc0 r0, v ;";
        for (variant, declared, program, expected) in [
            (default_variant, "v = 0; w = 0;", calls.to_owned(), UnmodelledFeature::ApiCalls),
            (
                separate_variant,
                "address u32 v = 0; address u32 w = 0;",
                format!("{one} ; st.nonpriv.sc0 v, 1 ; st.atom.dv.sc0 w, 1 ;"),
                UnmodelledFeature::TwoAddresses,
            ),
            (
                default_variant,
                "buffer u32 v [host] = 0;",
                "P0@host | P1@sg 0, wg 0, qf 0 ; submit P1 | st.sc0 v, 1 ; wait P1 | ; ld.sc0 r0, v | ;"
                    .to_owned(),
                UnmodelledFeature::HostThread,
            ),
            (
                default_variant,
                "v = 0;",
                format!("{one} ; sg.any r0, 1, 0 ;"),
                UnmodelledFeature::SubgroupOperations,
            ),
            (
                default_variant,
                "v = 0;",
                format!("{one} ; beq r0, 1, LC00 ; cbar.execsg.sg 0 ; LC00: ;"),
                UnmodelledFeature::SubgroupOperations,
            ),
        ] {
            let config = KernelConfig { subgroup_size: 64, lanes: 64, variant, ..KernelConfig::MINIMAL };
            let text = format!("VULKAN v {{ {declared} }} {program}");
            let test = litmus::parse(&text, "v").unwrap();
            let program = shaders::compile_program(&test, &config, Pipelines::Merged).unwrap();
            let prediction = Prediction { race: Race::Free, complete: true, ..Prediction::default() };
            let family = "GFX1036".parse().unwrap();
            let kernels = CompiledKernels {
                test: &test,
                program: &program,
                programs: &[],
                family: &family,
                descriptors: vendor::radv().descriptors.unwrap(),
                subgroup_size: 64,
            };
            assert_eq!(machine_question(&kernels, &prediction).unwrap_err(), expected, "{text}");
        }
    }
}
