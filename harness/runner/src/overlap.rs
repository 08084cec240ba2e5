//! Whether two invocations of a stage, or of two, ever run at once on a device. Drivers may shade all vertices on one thread: then nothing that a
//! test of that stage asks about two threads can happen, and waiting for one another is in vain.

use std::ops::ControlFlow;
use std::time::Duration;

use plan::{Device, Memory};
use shaders::{KernelConfig, Pipelines, Variant, variant::Stage};

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
/// Turns of such a loop: long enough for the other thread to begin, and within what drivers let a shader loop.
const TURNS: u32 = 16_000;
/// How long it is tried.
const TIME: Duration = Duration::from_millis(400);

/// Whether no two invocations of `stage`, of the two threads' stages where they are in different ones, were seen to run at once on `device`,
/// spread as `stress` says. Where the question cannot be asked, nothing is said.
pub(crate) fn runs_serially(
    device: &dyn Device,
    (stage, pipelines): (Stage, Pipelines),
    stress: &Stress,
) -> bool {
    let Ok(test) = litmus::parse(TEST, "overlap") else { return false };
    let stress =
        Stress { spin: (0, 0), rounds: (1, 1), memory_stress: None, calibrate: false, ..stress.clone() };
    let config = KernelConfig {
        loop_bound: TURNS,
        variant: Variant { stage, ..Variant::default() },
        ..stress.kernel_config(device.capabilities())
    };
    let Ok(program) = shaders::program(&test, &config, pipelines) else { return false };
    let settings = Settings::new(stress, Budget::time(TIME), 0);
    let mut met = false;
    let ran =
        run_program(device, &program, (Join::Barrier, Memory::Device), &test, &settings, &mut |progress| {
            met |= progress.observation().histogram.total() > 0;
            if met { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    ran.is_ok_and(|seen| seen.histogram.total() == 0 && seen.unresolved > 0)
}
