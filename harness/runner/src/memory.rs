//! The memory of a dispatch: the plan that uses it, and how it gets its initial values before each submission.

use litmus::Value;
use plan::{
    Buffer, BufferId, Capabilities, DeviceError, KernelId, Memory, Plan, Prepared, Queue, QueueId, Step,
};
use shaders::{Binding, Kernel, Parameters};

use crate::draw::Bounds;

const QUEUE: QueueId = QueueId(0);
const LOCATIONS: BufferId = BufferId(0);
const RESULTS: BufferId = BufferId(1);
const RENDEZVOUS: BufferId = BufferId(2);
const INITIAL: BufferId = BufferId(3);
const RESULTS_BACK: BufferId = BufferId(4);
const LOCATIONS_BACK: BufferId = BufferId(5);

/// Words between the rendezvous counters of two groups.
const RENDEZVOUS_STRIDE: usize = 16;

/// How the host and the kernel share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// The host reads and writes the very memory that the kernel uses: the only cheap way where both are one processor.
    Direct,
    /// The device fills its own memory, and copies to and from memory of the host.
    Copied,
}

impl Sharing {
    /// What suits a device.
    pub fn of(capabilities: &Capabilities) -> Sharing {
        if capabilities.is_cpu { Sharing::Direct } else { Sharing::Copied }
    }
}

/// A plan with one dispatch, and where in it things are.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The plan.
    pub plan: Plan,
    /// The step that dispatches.
    pub dispatch: usize,
    sharing: Sharing,
    initial: Vec<u32>,
    /// Stride and spacing for which the memory of initial values was filled last.
    filled: Option<(u32, u32)>,
}

impl Layout {
    /// The plan that runs `kernel` over result memory full of `poison`, and gives back its locations where
    /// `with_locations` says so.
    pub fn new(
        kernel: &Kernel,
        bounds: &Bounds,
        groups: u32,
        sharing: Sharing,
        with_locations: bool,
        poison: u32,
    ) -> Layout {
        let buffer = |words, memory, name| Buffer { words, memory, name };
        let mut buffers = vec![
            buffer(bounds.location_words, Memory::Device, "locations"),
            buffer(bounds.result_words, Memory::Device, "results"),
            buffer(bounds.rendezvous_words, Memory::Device, "rendezvous"),
        ];
        let dispatch = Step::Dispatch {
            queue: QUEUE,
            kernel: KernelId(0),
            workgroups: groups * bounds.classes,
            bindings: kernel
                .bindings
                .iter()
                .map(|binding| match binding {
                    Binding::Locations => LOCATIONS,
                    Binding::Results => RESULTS,
                    Binding::Rendezvous => RENDEZVOUS,
                })
                .collect(),
            push_constants: vec![0; Parameters::BYTES as usize],
        };
        let to_host = |buffer| Step::ToHost { queue: QUEUE, buffer };
        let copy = |from, to| Step::Copy { queue: QUEUE, from, to };
        let steps = match sharing {
            Sharing::Direct => vec![dispatch, to_host(RESULTS), to_host(LOCATIONS)],
            Sharing::Copied => {
                buffers.push(buffer(bounds.location_words, Memory::Shared, "initial values"));
                buffers.push(buffer(bounds.result_words, Memory::Readback, "results for the host"));
                let mut steps = vec![
                    Step::Fill { queue: QUEUE, buffer: RESULTS, value: poison },
                    Step::Fill { queue: QUEUE, buffer: RENDEZVOUS, value: 0 },
                    copy(INITIAL, LOCATIONS),
                    Step::Barrier { queue: QUEUE },
                    dispatch,
                    Step::Barrier { queue: QUEUE },
                    copy(RESULTS, RESULTS_BACK),
                ];
                if with_locations {
                    buffers.push(buffer(bounds.location_words, Memory::Readback, "locations for the host"));
                    steps.push(copy(LOCATIONS, LOCATIONS_BACK));
                    steps.push(to_host(LOCATIONS_BACK));
                }
                steps.push(to_host(RESULTS_BACK));
                steps
            }
        };
        let dispatch =
            steps.iter().position(|step| matches!(step, Step::Dispatch { .. })).unwrap_or_default();
        let kernels = vec![plan::Kernel {
            words: kernel.words.clone(),
            bindings: u32::try_from(kernel.bindings.len()).unwrap_or(u32::MAX),
            push_constant_bytes: Parameters::BYTES,
            subgroup_size: kernel.requirements.subgroup_size,
        }];
        Layout {
            plan: Plan { kernels, buffers, queues: vec![Queue { family: 0 }], steps },
            dispatch,
            sharing,
            initial: kernel.initial.iter().map(|Value(value)| *value as u32).collect(),
            filled: None,
        }
    }

    /// Makes the memory ready for a submission with `parameters`.
    ///
    /// # Errors
    /// When the device does not let the host write.
    pub fn reset(
        &mut self,
        prepared: &mut dyn Prepared,
        parameters: &Parameters,
        instances: usize,
        slots: usize,
    ) -> Result<(), DeviceError> {
        match self.sharing {
            Sharing::Direct => {
                start_of(prepared.write(RESULTS)?, slots * instances).fill(parameters.poison);
                let counters = parameters.groups as usize * RENDEZVOUS_STRIDE;
                start_of(prepared.write(RENDEZVOUS)?, counters).fill(0);
                self.fill_locations(prepared.write(LOCATIONS)?, parameters, instances);
            }
            Sharing::Copied => {
                // What lies there is only ever read: it is written anew when the layout changes.
                let layout = (parameters.stride, parameters.spacing);
                if self.filled != Some(layout) {
                    let words = prepared.write(INITIAL)?;
                    let room = words.len() / (parameters.stride as usize).max(1);
                    self.fill_locations(words, parameters, room);
                    self.filled = Some(layout);
                }
            }
        }
        Ok(())
    }

    fn fill_locations(&self, words: &mut [u32], parameters: &Parameters, instances: usize) {
        let stride = (parameters.stride as usize).max(1);
        if let [only] | [only, ..] = self.initial[..]
            && parameters.stride as usize == self.initial.len()
            && self.initial.iter().all(|value| *value == only)
        {
            return start_of(words, instances * stride).fill(only);
        }
        for (storage, value) in self.initial.iter().enumerate() {
            let first = (storage * parameters.spacing as usize).min(words.len());
            words[first..].iter_mut().step_by(stride).take(instances).for_each(|word| *word = *value);
        }
    }

    /// The buffers that hold the results and the locations for the host.
    pub fn readable(&self) -> (BufferId, BufferId) {
        match self.sharing {
            Sharing::Direct => (RESULTS, LOCATIONS),
            Sharing::Copied => (RESULTS_BACK, LOCATIONS_BACK),
        }
    }
}

fn start_of(words: &mut [u32], count: usize) -> &mut [u32] {
    let count = count.min(words.len());
    &mut words[..count]
}
