//! Tests whether two invocations of one or two stages ever run concurrently on a device.
//!
//! A driver may shade all vertices in one thread. Then no interaction between two threads of such a test is
//! possible, and waiting for a partner is useless.

use std::ops::ControlFlow;
use std::time::Duration;

use plan::{BufferMemory, Device};
use shaders::variant::{CarrierStage, InterlockMode};
use shaders::{KernelConfig, Pipelines, Variant};

use crate::join::Join;
use crate::run::run_program;
use crate::settings::{RunBudget, RunSettings};
use crate::stress::Stress;

/// Each thread sets its flag and polls the other's. The loops end only if both run concurrently.
const TEST: &str = "VULKAN overlap { x = 0; y = 0; }
P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
st.atom.qf.sc0 x, 1 | st.atom.qf.sc0 y, 1 ;
LC00: | LC01: ;
ld.atom.qf.sc0 r0, y | ld.atom.qf.sc0 r0, x ;
beq r0, 0, LC00 | beq r0, 0, LC01 ;
exists (P0:r0 == 1 /\\ P1:r0 == 1)";
/// The same for two fragments of one pixel, after their interlocked sections. If a driver shades them one
/// after another, nothing between them can happen, even outside of the sections.
const ON_ONE_PIXEL: &str = "VULKAN overlap { x = 0; y = 0; }
P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
interlock.begin.unordered 0 | interlock.begin.unordered 0 ;
interlock.end.unordered 0 | interlock.end.unordered 0 ;
st.atom.qf.sc0 x, 1 | st.atom.qf.sc0 y, 1 ;
LC00: | LC01: ;
ld.atom.qf.sc0 r0, y | ld.atom.qf.sc0 r0, x ;
beq r0, 0, LC00 | beq r0, 0, LC01 ;
exists (P0:r0 == 1 /\\ P1:r0 == 1)";
/// Iterations of a polling loop: long enough for the other thread to start, and within the loop limits of drivers.
const TURNS: u32 = 16_000;
/// Pairs that failed to meet after which the stage counts as serial. A count and not a time: on a busy
/// machine, a driver's threads rarely run concurrently, and fewer pairs finish in the same time.
const PAIRS: u64 = 2_000;
/// Time limit for this before one test. The next test of the stage continues an undecided search.
const TIME: Duration = Duration::from_secs(3);

/// The kind of invocations that are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Neighbours {
    /// The stage, or the stages of the two.
    pub stage: CarrierStage,
    /// Whether they are in one pipeline.
    pub pipelines: Pipelines,
    /// Their interlock mode, if they are fragments of one pixel.
    pub interlock: Option<InterlockMode>,
}

/// The evidence whether two invocations of a stage run concurrently on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverlapEvidence {
    /// They met, or the test cannot run.
    Decided,
    /// This many pairs failed to meet, and none met.
    InVain(u64),
}

impl OverlapEvidence {
    /// No evidence yet.
    pub const NONE: OverlapEvidence = OverlapEvidence::InVain(0);

    /// Returns true if enough pairs failed to meet.
    pub fn is_serial(self) -> bool {
        matches!(self, OverlapEvidence::InVain(pairs) if pairs >= PAIRS)
    }

    /// Adds evidence from `device` with `stress`, unless there is enough.
    #[must_use]
    pub fn with_more(self, device: &dyn Device, asked: Neighbours, stress: &Stress) -> OverlapEvidence {
        self.and(|most| in_vain(device, asked, stress, most))
    }

    /// Adds the result of `ask`, unless there is enough evidence. `ask` gets the number of missing pairs, and
    /// returns the number that failed to meet, or `None` if the question is decided.
    fn and(self, ask: impl FnOnce(u64) -> Option<u64>) -> OverlapEvidence {
        match self {
            OverlapEvidence::InVain(before) if before < PAIRS => match ask(PAIRS - before) {
                Some(more) => OverlapEvidence::InVain(before + more),
                None => OverlapEvidence::Decided,
            },
            enough => enough,
        }
    }
}

/// Counts pairs that failed to meet, up to `most` or the time limit. `None` if two invocations met, or the
/// test cannot run.
fn in_vain(
    device: &dyn Device,
    Neighbours { stage, pipelines, interlock }: Neighbours,
    stress: &Stress,
    most: u64,
) -> Option<u64> {
    let text = if interlock.is_some() { ON_ONE_PIXEL } else { TEST };
    let test = litmus::parse(text, "overlap").ok()?;
    let stress =
        // The loops of the test are the rendezvous, so that the kernel needs none.
        Stress { spin: (0, 0), rounds: (1, 1), memory_stress: None, calibrate: false, ..stress.clone() };
    let config = KernelConfig {
        loop_bound: TURNS,
        variant: Variant { stage, interlock: interlock.unwrap_or_default(), ..Variant::default() },
        ..stress.kernel_config(device.capabilities())
    };
    let program = shaders::program(&test, &config, pipelines).ok()?;
    let settings = RunSettings::new(stress, RunBudget::time(TIME), 0);
    let ran = run_program(
        device,
        &program,
        (Join::Barrier, BufferMemory::Device),
        &test,
        &settings,
        &mut |progress| {
            let seen = progress.observation();
            // A complete instance means that both loops ended: the two met. In an unresolved one, a
            // loop reached its bound.
            let enough = seen.histogram.total_count() > 0 || seen.unresolved >= most;
            if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    let seen = ran.ok()?;
    (seen.histogram.total_count() == 0 && seen.unresolved > 0).then_some(seen.unresolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_serial_by_observations_not_by_time() {
        assert!(!OverlapEvidence::NONE.is_serial() && !OverlapEvidence::InVain(PAIRS - 1).is_serial());
        assert!(OverlapEvidence::InVain(PAIRS).is_serial() && !OverlapEvidence::Decided.is_serial());
    }

    /// Evidence accumulates over tests until there is enough.
    #[test]
    fn evidence_adds_up_over_tests() {
        let mut asked = Vec::new();
        let mut evidence = OverlapEvidence::NONE;
        for in_vain in [700, 700, 0, 599, 2, 50] {
            assert_eq!(evidence.is_serial(), asked.len() == 5, "{evidence:?}");
            evidence = evidence.and(|most| {
                asked.push(most);
                Some(in_vain)
            });
        }
        assert_eq!(asked, [2_000, 1_300, 600, 600, 1]);
        assert_eq!(evidence, OverlapEvidence::InVain(2_001));
        // One meeting outweighs all failures, and ends the search.
        let met = OverlapEvidence::InVain(PAIRS - 1).and(|_| None);
        assert_eq!(met.and(|_| Some(PAIRS)), OverlapEvidence::Decided);
    }

    /// Decided questions are not tested again, and a meeting decides independently of earlier evidence.
    #[test]
    fn evidence_is_gathered_until_it_is_enough() {
        let device = sim::SimDevice::new(sim::Fault::None);
        let stress = Stress::for_device(device.identity(), device.capabilities()).unwrap();
        let stage =
            Neighbours { stage: CarrierStage::Fragment, pipelines: Pipelines::Merged, interlock: None };
        let on_one_pixel = Neighbours { interlock: Some(InterlockMode::Pixel), ..stage };
        assert_eq!(OverlapEvidence::NONE.with_more(&device, on_one_pixel, &stress), OverlapEvidence::Decided);
        for before in [OverlapEvidence::NONE, OverlapEvidence::InVain(PAIRS - 1), OverlapEvidence::Decided] {
            assert_eq!(before.with_more(&device, stage, &stress), OverlapEvidence::Decided);
        }
        let serial = OverlapEvidence::InVain(PAIRS);
        assert_eq!(serial.with_more(&device, stage, &stress), serial);
    }
}
