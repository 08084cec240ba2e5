//! Whether two invocations of a stage, or of two, ever run at once on a device. Drivers may shade all vertices on one thread: then nothing that a
//! test of that stage asks about two threads can happen, and waiting for one another is in vain.

use std::ops::ControlFlow;
use std::time::Duration;

use plan::{Device, Memory};
use shaders::variant::{Interlock, Stage};
use shaders::{KernelConfig, Pipelines, Variant};

use crate::join::Join;
use crate::run::{Budget, Settings, run_program};
use crate::stress::Stress;

/// Both threads say that they are there, and wait for the other: the loop of each ends only where both run at once.
const TEST: &str = "VULKAN overlap { x = 0; y = 0; }
P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
st.atom.qf.sc0 x, 1 | st.atom.qf.sc0 y, 1 ;
LC00: | LC01: ;
ld.atom.qf.sc0 r0, y | ld.atom.qf.sc0 r0, x ;
beq r0, 0, LC00 | beq r0, 0, LC01 ;
exists (P0:r0 == 1 /\\ P1:r0 == 1)";
/// The same of two fragments of one pixel, behind their interlocked sections: where drivers shade one after the other, whatever stands
/// outside of sections, nothing that a test asks about two of them can happen.
const ON_ONE_PIXEL: &str = "VULKAN overlap { x = 0; y = 0; }
P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
interlock.begin.unordered 0 | interlock.begin.unordered 0 ;
interlock.end.unordered 0 | interlock.end.unordered 0 ;
st.atom.qf.sc0 x, 1 | st.atom.qf.sc0 y, 1 ;
LC00: | LC01: ;
ld.atom.qf.sc0 r0, y | ld.atom.qf.sc0 r0, x ;
beq r0, 0, LC00 | beq r0, 0, LC01 ;
exists (P0:r0 == 1 /\\ P1:r0 == 1)";
/// Turns of such a loop: long enough for the other thread to begin, and within what drivers let a shader loop.
const TURNS: u32 = 16_000;
/// Pairs that waited for one another in vain after which nobody is expected to meet. They are counted and not timed: on a busy machine a
/// driver's threads seldom have the processors at once, and fewer pairs wait in any time.
const PAIRS: u64 = 2_000;
/// How long it is tried before one test. What is not known then, the next test of the stage asks again.
const TIME: Duration = Duration::from_secs(3);

/// Of which invocations it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Neighbours {
    /// The stage, or the stages of the two.
    pub stage: Stage,
    /// Whether they are of one pipeline.
    pub pipelines: Pipelines,
    /// How sections keep them apart, where they are fragments of one pixel.
    pub interlock: Option<Interlock>,
}

/// Whether two invocations of a stage run at once on a device, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// They met, or cannot be asked to.
    Decided,
    /// So many pairs of them waited for one another in vain, and none met.
    InVain(u64),
}

impl Evidence {
    /// Nothing yet.
    pub const NONE: Evidence = Evidence::InVain(0);

    /// Whether no two were seen to run at once, of as many as would have shown it.
    pub fn is_serial(self) -> bool {
        matches!(self, Evidence::InVain(pairs) if pairs >= PAIRS)
    }

    /// More of it, where it is not enough: of these invocations, spread on `device` as `stress` says.
    #[must_use]
    pub fn with_more(self, device: &dyn Device, asked: Neighbours, stress: &Stress) -> Evidence {
        self.and(|most| in_vain(device, asked, stress, most))
    }

    /// With what `ask` finds, where it is not enough: it is told after how many pairs in vain there would be enough, and says how many
    /// there were, or that it is decided.
    fn and(self, ask: impl FnOnce(u64) -> Option<u64>) -> Evidence {
        match self {
            Evidence::InVain(before) if before < PAIRS => match ask(PAIRS - before) {
                Some(more) => Evidence::InVain(before + more),
                None => Evidence::Decided,
            },
            enough => enough,
        }
    }
}

/// Pairs that waited in vain, until they are `most` or more, or the time is up; `None` where two invocations met, or where the question
/// cannot be asked.
fn in_vain(
    device: &dyn Device,
    Neighbours { stage, pipelines, interlock }: Neighbours,
    stress: &Stress,
    most: u64,
) -> Option<u64> {
    let text = if interlock.is_some() { ON_ONE_PIXEL } else { TEST };
    let test = litmus::parse(text, "overlap").ok()?;
    let stress =
        Stress { spin: (0, 0), rounds: (1, 1), memory_stress: None, calibrate: false, ..stress.clone() };
    let config = KernelConfig {
        loop_bound: TURNS,
        variant: Variant { stage, interlock: interlock.unwrap_or_default(), ..Variant::default() },
        ..stress.kernel_config(device.capabilities())
    };
    let program = shaders::program(&test, &config, pipelines).ok()?;
    let settings = Settings::new(stress, Budget::time(TIME), 0);
    let ran =
        run_program(device, &program, (Join::Barrier, Memory::Device), &test, &settings, &mut |progress| {
            let seen = progress.observation();
            let enough = seen.histogram.total() > 0 || seen.unresolved >= most;
            if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    let seen = ran.ok()?;
    (seen.histogram.total() == 0 && seen.unresolved > 0).then_some(seen.unresolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_serial_by_what_was_seen_and_not_by_the_time_that_it_took() {
        assert!(!Evidence::NONE.is_serial() && !Evidence::InVain(PAIRS - 1).is_serial());
        assert!(Evidence::InVain(PAIRS).is_serial() && !Evidence::Decided.is_serial());
    }

    /// What one test leaves open the next one goes on with, until all of them together have seen enough, and not before.
    #[test]
    fn evidence_adds_up_over_tests() {
        let mut asked = Vec::new();
        let mut evidence = Evidence::NONE;
        for in_vain in [700, 700, 0, 599, 2, 50] {
            assert_eq!(evidence.is_serial(), asked.len() == 5, "{evidence:?}");
            evidence = evidence.and(|most| {
                asked.push(most);
                Some(in_vain)
            });
        }
        assert_eq!(asked, [2_000, 1_300, 600, 600, 1]);
        assert_eq!(evidence, Evidence::InVain(2_001));
        // One meeting outweighs all that was in vain before, and nobody asks again.
        let met = Evidence::InVain(PAIRS - 1).and(|_| None);
        assert_eq!(met.and(|_| Some(PAIRS)), Evidence::Decided);
    }

    /// What is known is not asked again; where two invocations meet, that decides, whatever was in vain before.
    #[test]
    fn evidence_is_gathered_until_it_is_enough() {
        let device = sim::SimDevice::new(sim::Fault::None);
        let stress = Stress::for_device(device.identity(), device.capabilities()).unwrap();
        let stage = Neighbours { stage: Stage::Fragment, pipelines: Pipelines::Merged, interlock: None };
        let on_one_pixel = Neighbours { interlock: Some(Interlock::Pixel), ..stage };
        assert_eq!(Evidence::NONE.with_more(&device, on_one_pixel, &stress), Evidence::Decided);
        for before in [Evidence::NONE, Evidence::InVain(PAIRS - 1), Evidence::Decided] {
            assert_eq!(before.with_more(&device, stage, &stress), Evidence::Decided);
        }
        let serial = Evidence::InVain(PAIRS);
        assert_eq!(serial.with_more(&device, stage, &stress), serial);
    }
}
