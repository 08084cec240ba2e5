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
const SAME_PIXEL_TEST: &str = "VULKAN overlap { x = 0; y = 0; }
P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
interlock.begin.unordered 0 | interlock.begin.unordered 0 ;
interlock.end.unordered 0 | interlock.end.unordered 0 ;
st.atom.qf.sc0 x, 1 | st.atom.qf.sc0 y, 1 ;
LC00: | LC01: ;
ld.atom.qf.sc0 r0, y | ld.atom.qf.sc0 r0, x ;
beq r0, 0, LC00 | beq r0, 0, LC01 ;
exists (P0:r0 == 1 /\\ P1:r0 == 1)";
/// Iterations of a polling loop: long enough for the other thread to start, and within the loop limits of drivers.
const LOOP_BOUND: u32 = 16_000;
/// Pairs that failed to meet after which the stage counts as serial. A count and not a time: on a busy
/// machine, a driver's threads rarely run concurrently, and fewer pairs finish in the same time.
const SERIAL_THRESHOLD: u64 = 2_000;
/// Time limit for this before one test. The next test of the stage continues an undecided search.
const TIME_LIMIT: Duration = Duration::from_secs(3);

/// The kind of invocations that are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InvocationPair {
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
    /// Two invocations met, or the test cannot run.
    Decided,
    /// This many pairs failed to meet, and none met.
    FailedPairs(u64),
}

impl OverlapEvidence {
    /// No evidence yet.
    pub const NONE: OverlapEvidence = OverlapEvidence::FailedPairs(0);

    /// Returns true if enough pairs failed to meet.
    pub fn is_serial(self) -> bool {
        matches!(self, OverlapEvidence::FailedPairs(pairs) if pairs >= SERIAL_THRESHOLD)
    }

    /// Adds evidence from `device` with `stress`, unless there is enough.
    #[must_use]
    pub fn with_more(self, device: &dyn Device, pair: InvocationPair, stress: &Stress) -> OverlapEvidence {
        self.extend_with(|most| count_failed_pairs(device, pair, stress, most))
    }

    /// Adds the result of `count_more` unless there is enough evidence. It gets the number of missing pairs,
    /// and returns the number that failed to meet, or `None` if the question is decided.
    fn extend_with(self, count_more: impl FnOnce(u64) -> Option<u64>) -> OverlapEvidence {
        match self {
            OverlapEvidence::FailedPairs(before) if before < SERIAL_THRESHOLD => {
                match count_more(SERIAL_THRESHOLD - before) {
                    Some(more) => OverlapEvidence::FailedPairs(before + more),
                    None => OverlapEvidence::Decided,
                }
            }
            enough => enough,
        }
    }
}

/// Counts pairs that failed to meet, up to `max_pairs` or the time limit. `None` if two invocations met,
/// or the test cannot run.
fn count_failed_pairs(
    device: &dyn Device,
    InvocationPair { stage, pipelines, interlock }: InvocationPair,
    stress: &Stress,
    max_pairs: u64,
) -> Option<u64> {
    let text = if interlock.is_some() { SAME_PIXEL_TEST } else { TEST };
    let test = litmus::parse(text, "overlap").ok()?;
    let stress =
        // The loops of the test are the rendezvous, so that the kernel needs none.
        Stress { spin: (0, 0), rounds: (1, 1), memory_stress: None, calibrate: false, ..stress.clone() };
    let config = KernelConfig {
        loop_bound: LOOP_BOUND,
        variant: Variant { stage, interlock: interlock.unwrap_or_default(), ..Variant::default() },
        ..stress.kernel_config(device.capabilities())
    };
    let program = shaders::compile_program(&test, &config, pipelines).ok()?;
    let settings = RunSettings::new(stress, RunBudget::time(TIME_LIMIT), 0);
    let ran = run_program(
        device,
        &program,
        Join::Barrier,
        BufferMemory::Device,
        &test,
        &settings,
        &mut |progress| {
            let seen = progress.observation();
            // A complete instance means that both loops ended: the two met. In an unresolved one, a
            // loop reached its bound.
            let enough = seen.histogram.total_count() > 0 || seen.unresolved >= max_pairs;
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
        assert!(
            !OverlapEvidence::NONE.is_serial()
                && !OverlapEvidence::FailedPairs(SERIAL_THRESHOLD - 1).is_serial()
        );
        assert!(
            OverlapEvidence::FailedPairs(SERIAL_THRESHOLD).is_serial()
                && !OverlapEvidence::Decided.is_serial()
        );
    }

    /// Evidence accumulates over tests until there is enough.
    #[test]
    fn evidence_adds_up_over_tests() {
        let mut requested = Vec::new();
        let mut evidence = OverlapEvidence::NONE;
        for failed_pairs in [700, 700, 0, 599, 2, 50] {
            assert_eq!(evidence.is_serial(), requested.len() == 5, "{evidence:?}");
            evidence = evidence.extend_with(|most| {
                requested.push(most);
                Some(failed_pairs)
            });
        }
        assert_eq!(requested, [2_000, 1_300, 600, 600, 1]);
        assert_eq!(evidence, OverlapEvidence::FailedPairs(2_001));
        // One meeting outweighs all failures, and ends the search.
        let decided = OverlapEvidence::FailedPairs(SERIAL_THRESHOLD - 1).extend_with(|_| None);
        assert_eq!(decided.extend_with(|_| Some(SERIAL_THRESHOLD)), OverlapEvidence::Decided);
    }

    /// Decided questions are not tested again, and a meeting decides independently of earlier evidence.
    #[test]
    fn evidence_is_gathered_until_it_is_enough() {
        let device = sim::SimDevice::new(sim::Fault::None);
        let stress = Stress::for_device(device.identity(), device.capabilities()).unwrap();
        let stage =
            InvocationPair { stage: CarrierStage::Fragment, pipelines: Pipelines::Merged, interlock: None };
        let on_one_pixel = InvocationPair { interlock: Some(InterlockMode::Pixel), ..stage };
        assert_eq!(OverlapEvidence::NONE.with_more(&device, on_one_pixel, &stress), OverlapEvidence::Decided);
        for before in [
            OverlapEvidence::NONE,
            OverlapEvidence::FailedPairs(SERIAL_THRESHOLD - 1),
            OverlapEvidence::Decided,
        ] {
            assert_eq!(before.with_more(&device, stage, &stress), OverlapEvidence::Decided);
        }
        let serial = OverlapEvidence::FailedPairs(SERIAL_THRESHOLD);
        assert_eq!(serial.with_more(&device, stage, &stress), serial);
    }
}
