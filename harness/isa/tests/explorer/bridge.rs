//! From a litmus test, its kernels and their machine text to a question for the explorer.

use std::collections::BTreeSet;

use isa::question::{Initial, Kernel, Observed, Resource, Shows, Space, Word, Workgroup};
use isa::{Family, Program as Text, Question};
use litmus::{Observable, Place, Prediction, ScalarType, Test, ThreadId, Value};
use shaders::variant::Images;
use shaders::{Binding, KernelConfig, Parameters, Pipelines, Program, ResultSlot, Variant};

/// The location buffer, and what shows the same memory.
pub const LOCATIONS: Space = Space(0);
/// The result buffer.
pub const RESULTS: Space = Space(1);
/// The rendezvous buffer.
pub const RENDEZVOUS: Space = Space(2);
/// Images.
pub const IMAGES: Space = Space(3);
/// Scratch memory.
pub const SCRATCH: Space = Space(4);

/// How kernels are made for exploring: whole waves, one of whose lanes is followed.
pub const CONFIG: KernelConfig = KernelConfig {
    subgroup_size: 64,
    lanes: 64,
    max_workgroup_invocations: 1024,
    device_scope: true,
    loop_bound: 1,
    stressed: false,
    variant: shaders::variant::DEFAULT,
};

/// The kernels of a test in the form for exploring.
pub fn kernels(test: &Test, variant: Variant, pipelines: Pipelines) -> Result<Program, String> {
    let config = KernelConfig { variant, ..CONFIG };
    shaders::fixed_program(test, &config, pipelines, &Parameters::SINGLE).map_err(|error| error.to_string())
}

/// The question whether outcomes that the prediction does not allow can be seen.
pub fn question(
    test: &Test,
    program: &Program,
    texts: &[Text],
    family: &Family,
    prediction: &Prediction,
) -> Result<Question, String> {
    let [phase] = program.phases.as_slice() else { return Err("several dispatches".to_owned()) };
    if !prediction.complete {
        return Err("the prediction is not complete".to_owned());
    }
    let mut kernels = Vec::new();
    let mut workgroups = Vec::new();
    for (number, (part, text)) in phase.parts.iter().zip(texts).enumerate() {
        let kernel = &part.kernel;
        let shows: Vec<Shows> = kernel
            .bindings
            .iter()
            .map(|binding| {
                Shows::Buffer(match binding {
                    Binding::Locations => LOCATIONS,
                    Binding::Results => RESULTS,
                    Binding::Rendezvous => RENDEZVOUS,
                    Binding::Scratch => SCRATCH,
                })
            })
            .chain(kernel.images.iter().map(|image| match image.shape {
                Images::TexelBuffer => Shows::Texels(LOCATIONS),
                Images::TwoDimensional => Shows::Image { space: IMAGES, row: 4096 },
                Images::OneDimensional => Shows::Image { space: IMAGES, row: 0 },
            }))
            .collect();
        kernels.push(Kernel {
            program: text.clone(),
            resources: Resource::radv(&shows),
            address: kernel.addresses.then_some(LOCATIONS),
        });
        for (id, threads) in kernel.roles.classes.iter().enumerate() {
            let of_test = |local: &ThreadId| part.threads[usize::from(local.0)];
            let threads: Vec<ThreadId> = threads.iter().map(of_test).collect();
            let waves = if kernel.requirements.subgroup_size.is_some() {
                let count = kernel.workgroup_size.div_ceil(CONFIG.subgroup_size) as usize;
                lanes(test, &threads, kernel.lanes, count)?
            } else {
                vec![vec![0]]
            };
            workgroups.push(Workgroup {
                kernel: number,
                id: id as u32,
                wave_size: CONFIG.subgroup_size,
                waves,
            });
        }
    }

    let parameters = Parameters::SINGLE;
    let unit = |storage: u32| storage * parameters.spacing * 4 * program.storage_words.max(1);
    let in_image = program.in_image();
    let place = |storage: u32, bytes: u8| {
        if in_image.contains(&storage) {
            Word { space: IMAGES, offset: storage * parameters.spacing * 4, bytes }
        } else {
            Word { space: LOCATIONS, offset: unit(storage), bytes }
        }
    };
    let mut initial = Vec::new();
    for (storage, value) in (0..).zip(&program.initial) {
        let bytes = if program.storage_words > 1 && !in_image.contains(&storage) { 8 } else { 4 };
        initial.push(Initial { place: place(storage, bytes), value: value.0 });
    }
    let slot =
        |number: usize, bytes| Word { space: RESULTS, offset: number as u32 * program.lanes * 4, bytes };

    let mut columns = Vec::new();
    let mut observed = Vec::new();
    for (position, observable) in prediction.observables.iter().enumerate() {
        let scalar = match observable {
            Observable::Register(thread, register) => test.register_type(*thread, *register),
            Observable::Location(location) => test.location(*location).scalar_type(),
        };
        let bytes = (scalar.bits() / 8) as u8;
        let of = |wanted: ResultSlot| program.results.iter().position(|known| *known == wanted);
        if let Some(low) = of(ResultSlot::Register(*observable)) {
            observed.push(Observed { place: slot(low, bytes.min(4)), required: None });
            columns.push((position, 0, bytes.min(4), false));
            if bytes == 8 {
                let high = of(ResultSlot::High(*observable)).ok_or("no high word")?;
                observed.push(Observed { place: slot(high, 4), required: None });
                columns.push((position, 32, 4, false));
            }
        } else {
            let known = program.finals.iter().find(|(known, _)| known == observable);
            let (_, storage) = known.ok_or("an observable that no kernel reports")?;
            observed.push(Observed { place: place(*storage, bytes), required: None });
            columns.push((position, 0, bytes, scalar == ScalarType::F32));
        }
    }
    let dones = program.results.iter().enumerate().filter(|(_, slot)| matches!(slot, ResultSlot::Done(_)));
    for (number, _) in dones {
        observed.push(Observed { place: slot(number, 4), required: Some(u64::from(parameters.done)) });
    }
    let allowed: BTreeSet<Vec<u64>> = prediction
        .outcomes
        .iter()
        .filter(|(_, outcome)| outcome.allowed)
        .map(|(outcome, _)| {
            let of = |(position, shift, bytes, float): &(usize, u32, u8, bool)| {
                let Value(value) = outcome.0.get(*position).copied().unwrap_or(Value(0));
                if *float {
                    return u64::from((value as u32 as i32 as f32).to_bits());
                }
                let mask = if *bytes == 8 { u64::MAX } else { (1 << (8 * u32::from(*bytes))) - 1 };
                (value >> shift) & mask
            };
            let mut values: Vec<u64> = columns.iter().map(of).collect();
            values.resize(observed.len(), u64::from(parameters.done));
            values
        })
        .collect();
    Ok(Question { family: family.clone(), kernels, workgroups, initial, observed, allowed })
}

/// The lanes of each wave that play threads of the instance: subgroups in the order in which threads first name them, and
/// within one a share for each thread.
fn lanes(test: &Test, threads: &[ThreadId], lanes: u32, waves: usize) -> Result<Vec<Vec<u8>>, String> {
    let mut subgroups: Vec<u32> = Vec::new();
    let mut of_wave: Vec<Vec<u8>> = vec![Vec::new(); waves];
    for thread in threads {
        let Place::Device(place) = test.thread(*thread).place else {
            return Err("a thread of the host".to_owned());
        };
        let number = subgroups.iter().position(|known| *known == place.subgroup).unwrap_or_else(|| {
            subgroups.push(place.subgroup);
            subgroups.len() - 1
        });
        let wave = of_wave.get_mut(number).ok_or("more subgroups than waves")?;
        wave.push((wave.len() as u32 * lanes) as u8);
    }
    for wave in &mut of_wave {
        // A wave without a thread meets in barriers all the same.
        if wave.is_empty() {
            wave.push(0);
        }
    }
    Ok(of_wave)
}
