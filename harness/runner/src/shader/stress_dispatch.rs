//! Memory stress next to a user shader: dispatches of a second pipeline whose invocations access their own
//! memory in loops.

use plan::{BufferId, Capabilities, DeviceError, Kernel, KernelId, PlanStep, Prepared, QueueId};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use shaders::StressParameters;
use shaders::stress::{StressKernel, stress_kernel};

use crate::stress::{MemoryStress, Stress};

/// Invocations of a workgroup.
const INVOCATIONS: u32 = 32;
/// Workgroups if the stress does not set them: on the host's processor, on the simulated GPU, and on other
/// devices.
const CPU_WORKGROUPS: (u32, u32) = (1, 4);
const SIMULATED_WORKGROUPS: (u32, u32) = (1, 2);
const GPU_WORKGROUPS: (u32, u32) = (1, 256);
/// Loop iterations of an invocation if the stress does not set them, for the same devices.
const CPU_ITERATIONS: (u32, u32) = (1, 256);
const SIMULATED_ITERATIONS: (u32, u32) = (1, 8);
const GPU_ITERATIONS: (u32, u32) = (1, 1_024);
/// Iterations reserved for a driver that limits them.
const SPARE_ITERATIONS: u32 = 1_000;
/// Invocations of a workgroup on the simulated GPU, which executes them one by one.
const SIMULATED_INVOCATIONS: u32 = 4;
/// The maximum words of a line, and the number of regions.
const LINE_WORDS: u32 = 64;
const REGIONS: u32 = 64;

/// The second pipeline, and its drawn parameters.
pub(super) struct StressDispatch {
    generator: Xoshiro256PlusPlus,
    kernel: StressKernel,
    stress: MemoryStress,
    workgroups: (u32, u32),
    iterations: (u32, u32),
    max_workgroups: u32,
    current: (u32, StressParameters),
}

impl StressDispatch {
    /// Creates the stress for a device; `None` if it lacks the memory model, which the kernel needs.
    pub fn new(seed: u64, stress: &Stress, capabilities: &Capabilities) -> Option<StressDispatch> {
        if !capabilities.memory_model {
            return None;
        }
        let memory = stress.memory_stress.clone().unwrap_or_default();
        let (workgroups, turns, invocations) = if capabilities.shares_choices {
            (SIMULATED_WORKGROUPS, SIMULATED_ITERATIONS, SIMULATED_INVOCATIONS)
        } else if capabilities.is_cpu {
            (CPU_WORKGROUPS, CPU_ITERATIONS, INVOCATIONS)
        } else {
            (GPU_WORKGROUPS, GPU_ITERATIONS, INVOCATIONS)
        };
        let is_configured = memory.workgroups.1 > 0;
        let max_iterations =
            capabilities.loop_budget.map_or(u32::MAX, |budget| budget.saturating_sub(SPARE_ITERATIONS));
        let turns = if is_configured { memory.iterations } else { turns };
        let config = stress.kernel_config(capabilities);
        let invocations = invocations.min(capabilities.max_workgroup_invocations.max(1));
        let mut hammer = StressDispatch {
            generator: Xoshiro256PlusPlus::seed_from_u64(seed),
            kernel: stress_kernel(&config, invocations),
            workgroups: if is_configured { memory.workgroups } else { workgroups },
            iterations: (turns.0.min(max_iterations), turns.1.min(max_iterations)),
            max_workgroups: capabilities.max_workgroups.max(1),
            stress: memory,
            current: (1, StressParameters { chunk: 1, lines: 1, words: 1, ..StressParameters::default() }),
        };
        hammer.sample_parameters();
        Some(hammer)
    }

    pub fn kernel(&self) -> Kernel {
        Kernel {
            words: self.kernel.words.clone(),
            bindings: 1,
            push_constant_bytes: StressParameters::BYTES,
            ..Kernel::default()
        }
    }

    pub fn scratch_words(&self) -> u64 {
        u64::from(LINE_WORDS * REGIONS)
    }

    /// Draws new parameters.
    pub fn sample_parameters(&mut self) {
        let is_enabled = self.generator.random_range(1..=100) <= self.stress.percent;
        let within = |generator: &mut Xoshiro256PlusPlus, (least, most): (u32, u32)| {
            generator.random_range(least..=most.max(least))
        };
        let workgroups = within(&mut self.generator, self.workgroups).clamp(1, self.max_workgroups);
        let turns = within(&mut self.generator, self.iterations);
        let patterns = &self.stress.patterns;
        let pattern = patterns.get(self.generator.random_range(0..patterns.len().max(1)));
        let lines = within(&mut self.generator, self.stress.lines).clamp(1, REGIONS);
        let chunk = if self.generator.random() { workgroups.div_ceil(lines).max(1) } else { 1 };
        let base = self.generator.random_range(0..LINE_WORDS);
        let parameters = StressParameters {
            iterations: if is_enabled { turns } else { 0 },
            pattern: pattern.map_or(0, |pattern| pattern.word()),
            lines,
            chunk,
            step: LINE_WORDS,
            base,
            words: LINE_WORDS * REGIONS,
            ..StressParameters::default()
        };
        self.current = (workgroups, parameters);
    }

    pub fn dispatch_step(&self, queue: QueueId, kernel: KernelId, scratch: BufferId) -> PlanStep {
        let (workgroups, parameters) = &self.current;
        PlanStep::Dispatch {
            queue,
            kernel,
            workgroups: *workgroups,
            bindings: vec![scratch],
            push_constants: parameters.to_bytes(),
        }
    }

    /// Sets the drawn parameters in a prepared plan; the number of workgroups only if the device supports
    /// that.
    pub fn set_parameters(&self, prepared: &mut dyn Prepared, step: usize) -> Result<(), DeviceError> {
        let (workgroups, parameters) = &self.current;
        match prepared.set_workgroups(step, *workgroups) {
            Ok(()) | Err(DeviceError::Unsupported(_)) => {}
            Err(error) => return Err(error),
        }
        prepared.set_push_constants(step, &parameters.to_bytes())
    }
}
