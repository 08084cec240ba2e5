//! The main loop with scripted devices: every instance is accounted for, and no observation is lost.
#![expect(clippy::unwrap_used, reason = "a failure is the report")]

mod common;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use common::{
    FakeDevice, HostFault, SubmissionEnd, execute_all_roles, execute_role, kernel, store_buffering,
};
use litmus::{Observation, Outcome, Value};
use plan::{DeviceError, PlanStep};
use runner::{
    Cause, ContentionTimeShares, ExerciseCriterion, MemoryStress, RunBudget, RunError, RunSettings, Stress,
    canary, run,
};
use shaders::CompiledKernel;

const IS_CPU: [bool; 2] = [true, false];

fn settings(instances: u64) -> RunSettings {
    RunSettings::new(Stress::preset("sim").unwrap(), RunBudget::instances(instances), 7)
}

fn observe(device: &FakeDevice, settings: &RunSettings) -> Result<Observation, RunError> {
    run(device, &kernel(), &store_buffering(), settings, &mut |_| ControlFlow::Continue(()))
}

fn outcome(values: [u64; 3]) -> Outcome {
    Outcome(values.map(Value).to_vec())
}

fn dispatched_instances(device: &FakeDevice) -> u64 {
    device.dispatch_parameters.borrow().iter().map(|p| u64::from(p.groups) * u64::from(p.rounds) * 4).sum()
}

#[test]
fn a_test_is_exercised_by_enough_instances_that_are_not_serial() {
    let exercise = ExerciseCriterion {
        serial_outcomes: vec![outcome([1, 0, 1]), outcome([0, 1, 1])],
        required_count: 3,
        time_shares: ContentionTimeShares::default(),
    };
    let mut seen = Observation::default().histogram;
    seen.add_count(outcome([1, 0, 1]), 1000);
    seen.add_count(outcome([0, 1, 1]), 1000);
    assert!(!exercise.is_met_by(&seen));
    seen.add_count(outcome([1, 1, 1]), 2);
    assert!(!exercise.is_met_by(&seen));
    seen.add_count(outcome([0, 0, 1]), 1);
    assert!(exercise.is_met_by(&seen));
}

#[test]
fn a_serial_device_shows_serial_outcomes_only() {
    for is_cpu in IS_CPU {
        for preset in Stress::preset_names() {
            let device = FakeDevice::conforming(is_cpu);
            let seen = observe(
                &device,
                &RunSettings { stress: Stress::preset(preset).unwrap(), ..settings(50_000) },
            )
            .unwrap();
            let serial = [outcome([0, 1, 1]), outcome([1, 0, 1])];
            assert!(seen.histogram.counts.keys().all(|o| serial.contains(o)), "{preset}: {seen:?}");
            assert!(seen.accounted_instances() >= 50_000);
            assert_eq!(seen.accounted_instances(), dispatched_instances(&device));
            assert_eq!(seen.dispatches, device.submissions.get());
            assert_eq!((seen.not_executed, seen.discarded_dispatches), (0, 0));
        }
    }
}

#[test]
fn the_seed_determines_every_parameter_without_a_time_budget() {
    let drawn = |seed| {
        let device = FakeDevice::conforming(false);
        let seen = observe(&device, &RunSettings { seed, ..settings(5_000) }).unwrap();
        (seen.histogram, device.dispatch_parameters.take())
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1).1, drawn(2).1);
}

/// An instance with an unwritten word counts as not executed, and its dispatch is discarded.
#[test]
fn instances_written_in_part_are_not_executed() {
    for is_cpu in IS_CPU {
        let device = FakeDevice::new(is_cpu, |_, memories| {
            let (parameters, workgroups) = (memories.parameters, memories.workgroups);
            common::for_each_role(&parameters, workgroups, |role, instance| {
                if (role, instance) != (1, 3) {
                    execute_role(memories, role, instance);
                }
            });
            SubmissionEnd::Ends
        });
        let seen = observe(&device, &settings(1_000)).unwrap();
        assert_eq!((seen.accounted_instances(), &seen.unexpected), (0, &BTreeMap::new()), "{seen:?}");
        assert_eq!((seen.not_executed, seen.partially_written), (seen.dispatches, seen.dispatches));
        assert_eq!(seen.discarded_dispatches, seen.dispatches);
    }
}

/// If a device executes more than a dispatch contains, all instances have results, but none counts.
#[test]
fn surplus_invocations_discard_their_dispatch() {
    for is_cpu in IS_CPU {
        let device = FakeDevice::new(is_cpu, |number, memories| {
            execute_all_roles(memories);
            let classes = memories.workgroups / memories.parameters.groups;
            memories.rendezvous[1 + classes as usize] = if number % 2 == 1 { 5 } else { 0 };
            SubmissionEnd::Ends
        });
        let seen = observe(&device, &settings(2_000)).unwrap();
        assert!(
            seen.accounted_instances() >= 2_000 && seen.discarded_dispatches == seen.dispatches / 2,
            "{seen:?}"
        );
        assert_eq!(seen.outside_grid, 5 * seen.discarded_dispatches);
        assert!(seen.not_executed > seen.discarded_dispatches);
    }
}

#[test]
fn a_wrong_end_marker_is_unexpected() {
    let device = FakeDevice::new(true, |_, memories| {
        execute_all_roles(memories);
        let p = memories.parameters;
        memories.results[(2 * p.rounds * p.groups * 4) as usize] = 5;
        SubmissionEnd::Ends
    });
    let seen = observe(&device, &settings(1_000)).unwrap();
    assert_eq!(seen.unexpected.values().sum::<u64>(), seen.dispatches);
    assert!(seen.unexpected.keys().all(|row| row[2] == 5));
}

#[test]
fn large_values_are_counted_as_they_are() {
    let device = FakeDevice::new(true, |_, memories| {
        execute_all_roles(memories);
        memories.results[1] = 0xfeed_beef;
        SubmissionEnd::Ends
    });
    let seen = observe(&device, &settings(1_000)).unwrap();
    let large: Vec<_> = seen.histogram.counts.iter().filter(|(o, _)| o.0[0] == Value(0xfeed_beef)).collect();
    assert_eq!(large.iter().map(|(_, count)| **count).sum::<u64>(), seen.dispatches);
    assert_eq!(seen.accounted_instances(), dispatched_instances(&device));
}

#[test]
fn random_results_are_bounded_and_accounted_for() {
    let device = FakeDevice::new(true, |number, memories| {
        let done = memories.parameters.done;
        let third = memories.results.len() / 3;
        let mut state = number as u32 | 1;
        for word in memories.results.iter_mut() {
            state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            *word = state;
        }
        let _ = (done, third);
        SubmissionEnd::Ends
    });
    let seen = observe(&device, &settings(200_000)).unwrap();
    assert_eq!(seen.accounted_instances(), dispatched_instances(&device));
    assert!(seen.histogram.counts.len() + seen.unexpected.len() <= 2 * 4096 + 1);
    let rest = seen.unrecorded_outcomes + seen.unexpected.get(&Vec::new()).copied().unwrap_or(0);
    assert!(rest > 100_000, "the rest is counted");
}

#[test]
fn one_instance_without_a_trace_discards_its_dispatch() {
    for is_cpu in IS_CPU {
        let device = FakeDevice::new(is_cpu, |number, memories| {
            execute_all_roles(memories);
            let (p, poison) = (memories.parameters, memories.parameters.poison);
            if number % 2 == 1 {
                let total = (p.rounds * p.groups * 4) as usize;
                for slot in 0..3 {
                    memories.results[slot * total + total - 1] = poison;
                }
            }
            SubmissionEnd::Ends
        });
        let seen = observe(&device, &settings(2_000)).unwrap();
        assert_eq!(seen.discarded_dispatches, seen.dispatches / 2);
        assert_eq!(seen.not_executed, seen.discarded_dispatches);
        assert!(seen.accounted_instances() >= 2_000 && seen.unexpected.is_empty());
        assert!(seen.accounted_instances() < dispatched_instances(&device));
    }
}

/// A thread without results was not executed, even if the driver is known to stop kernels at a bound.
#[test]
fn a_thread_without_a_trace_was_not_executed() {
    for loop_budget in [None, Some(65_535)] {
        let mut device = FakeDevice::new(true, |_, memories| {
            let (parameters, workgroups) = (memories.parameters, memories.workgroups);
            let last = parameters.rounds * parameters.groups * 4 - 1;
            common::for_each_role(&parameters, workgroups, |role, instance| {
                if (role, instance) != (1, last) {
                    execute_role(memories, role, instance);
                }
            });
            SubmissionEnd::Ends
        });
        device.capabilities.loop_budget = loop_budget;
        let seen = observe(&device, &settings(1_000)).unwrap();
        assert_eq!(seen.discarded_dispatches, seen.dispatches, "{seen:?}");
        assert!(seen.unexpected.is_empty());
    }
}

#[test]
fn a_run_on_a_device_that_executes_nothing_ends() {
    for is_cpu in IS_CPU {
        let device = FakeDevice::new(is_cpu, |_, _| SubmissionEnd::Ends);
        let seen = observe(&device, &settings(1_000)).unwrap();
        assert_eq!(seen.accounted_instances(), 0);
        assert_eq!((seen.dispatches, seen.discarded_dispatches), (20, 20));
        assert_eq!(seen.not_executed, dispatched_instances(&device));
    }
}

#[test]
fn observations_before_a_lost_device_are_reported() {
    let device = FakeDevice::new(false, |number, memories| {
        execute_all_roles(memories);
        if number < 5 { SubmissionEnd::Ends } else { SubmissionEnd::Lost }
    });
    let error = observe(&device, &settings(100_000)).unwrap_err();
    assert_eq!(error.cause, Cause::Device(DeviceError::DeviceLost("vkWaitForFences")));
    assert_eq!(error.observation.dispatches, 5);
    assert!(error.observation.accounted_instances() > 0);
}

#[test]
fn a_submission_that_hangs_ends_the_run_and_is_never_destroyed() {
    for preset in ["sim", "gpu"] {
        let device = FakeDevice::new(false, |number, memories| {
            execute_all_roles(memories);
            if number < 2 { SubmissionEnd::Ends } else { SubmissionEnd::Hangs }
        });
        let mut calls = 0;
        let settings = RunSettings {
            stress: Stress::preset(preset).unwrap(),
            // Long enough for several callbacks on a busy machine.
            submission_timeout: Duration::from_millis(400),
            ..settings(u64::MAX)
        };
        let error = run(&device, &kernel(), &store_buffering(), &settings, &mut |_| {
            calls += 1;
            ControlFlow::Continue(())
        })
        .unwrap_err();
        assert_eq!(error.cause, Cause::TimedOut { after: settings.submission_timeout });
        assert_eq!(error.observation.dispatches, 2);
        assert!(calls > 3, "the callback is called while a submission is waited for");
        assert_eq!(device.destroyed_in_flight.get(), 0);
    }
}

#[test]
fn the_callback_can_end_a_run() {
    let device = FakeDevice::conforming(false);
    let seen = run(&device, &kernel(), &store_buffering(), &settings(u64::MAX), &mut |progress| {
        assert_eq!(progress.instances(), progress.observation().accounted_instances());
        if progress.instances() > 500 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert!(seen.accounted_instances() > 500);
    assert_eq!(seen.accounted_instances(), dispatched_instances(&device));
}

#[test]
fn a_time_budget_ends_and_counts_everything() {
    let device = FakeDevice::conforming(false);
    let budget = RunBudget::time(Duration::from_millis(20));
    let stress = Stress::preset("gpu").unwrap();
    let seen = observe(&device, &RunSettings::new(stress, budget, 3)).unwrap();
    assert!(seen.dispatches > 0 && seen.seconds > 0.0);
    assert_eq!(seen.accounted_instances(), dispatched_instances(&device));
}

#[test]
fn without_changing_workgroups_the_groups_stay() {
    let mut device = FakeDevice::conforming(false);
    device.can_set_workgroups = false;
    observe(&device, &settings(2_000)).unwrap();
    let drawn = device.dispatch_parameters.borrow();
    // Each part of a run has new memory, which may have other groups.
    let changes = drawn.windows(2).filter(|pair| pair[0].groups != pair[1].groups).count();
    assert!(drawn.len() > 3 && changes < drawn.len() - 1 && changes < 12, "{changes} of {}", drawn.len());
}

#[test]
fn groups_are_drawn_for_each_dispatch() {
    let device = FakeDevice::conforming(false);
    observe(&device, &settings(5_000)).unwrap();
    let drawn = device.dispatch_parameters.borrow();
    assert!(drawn.iter().any(|p| p.groups != drawn[0].groups));
}

/// Returns a kernel with two workgroups per group, of which this many run the test.
fn filling_kernel(workgroups: u16) -> CompiledKernel {
    let filling = format!("workgroups-{workgroups}").parse().unwrap();
    let mut kernel = kernel();
    kernel.variant = shaders::Variant { workgroup_count: filling, ..shaders::Variant::default() };
    kernel
}

fn observe_filled(
    device: &FakeDevice,
    workgroups: u16,
    settings: &RunSettings,
) -> Result<Observation, RunError> {
    run(device, &filling_kernel(workgroups), &store_buffering(), settings, &mut |_| ControlFlow::Continue(()))
}

/// The fake device asserts that dispatches have the workgroups of these groups.
#[test]
fn a_variant_fixes_the_number_of_workgroups() {
    for preset in ["sim", "gpu", "swiftshader"] {
        let stress = Stress { memory_stress: None, ..Stress::preset(preset).unwrap() };
        let classify = runner::CountingPlace::Host;
        let settings = RunSettings { stress: Stress { classify, ..stress }, ..settings(9_000) };
        let usual = u64::from(settings.stress.groups.1) * u64::from(settings.stress.rounds.1);
        for workgroups in [2, 5, 64, 513, 2_048] {
            let device = FakeDevice::conforming(false);
            let seen = observe_filled(&device, workgroups, &settings).unwrap();
            assert!(seen.accounted_instances() >= 9_000);
            let groups = u32::from(workgroups) / 2;
            for drawn in device.dispatch_parameters.borrow().iter() {
                assert_eq!(drawn.groups, groups, "{preset} {workgroups}");
                // The amount of work is at most as usual, and there is at least one round.
                let all = u64::from(drawn.groups) * u64::from(drawn.rounds);
                assert!(all <= usual.max(groups.into()), "{preset} {workgroups}: {all}");
            }
        }
    }
}

#[test]
fn slow_rounds_do_not_reduce_the_workgroups_of_a_variant() {
    let mut device = FakeDevice::conforming(false);
    device.poll_duration = Duration::from_millis(2);
    let stress = Stress { submission_ms: 1, calibrate: true, ..Stress::preset("sim").unwrap() };
    let settings = RunSettings { stress, ..settings(2_000) };
    observe_filled(&device, 64, &settings).unwrap();
    let drawn = device.dispatch_parameters.borrow();
    assert!(drawn.len() > 4 && drawn.iter().all(|p| p.groups == 32), "{drawn:?}");
    drop(drawn);
    observe(&device, &settings).unwrap();
    assert_eq!(
        device.dispatch_parameters.borrow().last().unwrap().groups,
        1,
        "those that nobody asks for are halved"
    );
}

#[test]
fn too_many_workgroups_for_the_device_are_refused() {
    let device = FakeDevice::conforming(false);
    let error = observe_filled(&device, 65_535, &settings(1)).unwrap_err();
    assert_eq!(
        error.cause,
        Cause::TooSmall("32767 groups of 2 workgroups with 4 lanes, 2 locations and 3 results".into())
    );
    assert!(device.dispatch_parameters.borrow().is_empty());
}

/// Returns settings with memory stress of every kind.
fn stressed_device(seed: u64) -> (FakeDevice, RunSettings) {
    let memory_stress = Some(MemoryStress {
        workgroups: (3, 9),
        iterations: (1, 4),
        pre_stress: (1, 4),
        queue_workgroups: (1, 2),
        ..MemoryStress::default()
    });
    let stress = Stress { memory_stress, ..Stress::preset("sim").unwrap() };
    let mut device = FakeDevice::new(false, |_, memories| {
        let more = memories.workgroups - 2 * memories.parameters.groups;
        assert!((3..=9).contains(&more), "{more} workgroups in addition to those of the test");
        memories.workgroups -= more;
        execute_all_roles(memories);
        SubmissionEnd::Ends
    });
    device.capabilities.compute_queues = vec![1, 1];
    (
        device,
        RunSettings {
            stress,
            ..RunSettings::new(Stress::preset("sim").unwrap(), RunBudget::instances(2_000), seed)
        },
    )
}

#[test]
fn memory_stress_has_separate_workgroups_and_memory() {
    let mut kernel = kernel();
    kernel.bindings.push(shaders::Binding::Scratch);
    let drawn = |seed| {
        let (device, settings) = stressed_device(seed);
        let seen =
            run(&device, &kernel, &store_buffering(), &settings, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(seen.accounted_instances(), dispatched_instances(&device));
        (device.stress.take(), device.plan.take())
    };
    let (stress, plan) = drawn(7);
    assert_eq!(stress, drawn(7).0);
    assert_ne!(stress, drawn(8).0);
    assert!(stress.iter().any(|words| *words != stress[0]), "drawn for each dispatch");

    // Only memory stress uses scratch memory, and each queue has its scratch buffer. The checksums of
    // initial values are first, and those of everything that the host reads are last.
    assert_eq!(plan.queues.iter().map(|queue| queue.family).collect::<Vec<_>>(), [0, 1]);
    let dispatches: Vec<Vec<&str>> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            PlanStep::Dispatch { bindings, .. } => {
                Some(bindings.iter().map(|buffer| plan.buffers[buffer.0 as usize].name).collect())
            }
            _ => None,
        })
        .collect();
    let own = vec!["locations", "locations", "results", "rendezvous", "scratch"];
    let checked = |buffer: &'static str| vec![buffer, "checksums"];
    let before = [vec!["scratch of the other queue"], checked("locations"), checked("locations")];
    let after = [own, checked("results"), checked("locations")];
    assert_eq!(dispatches, [before, after].concat());
}

/// A dispatch whose results change after they were counted is misread, without being discarded.
#[test]
fn results_that_change_after_the_count_are_misread() {
    let mut device = FakeDevice::conforming(false);
    device.host_fault = Some(HostFault::LateResult);
    let seen = observe(&device, &settings(1_000)).unwrap();
    assert!(seen.accounted_instances() >= 1_000);
    assert_eq!((seen.misread_dispatches, seen.discarded_dispatches), (seen.dispatches, 0));
}

/// The device verifies initial values, so that no instance with another one counts.
#[test]
fn dispatches_with_wrong_initial_values_are_discarded() {
    let mut device = FakeDevice::conforming(false);
    device.host_fault = Some(HostFault::InitialValue);
    let seen = observe(&device, &settings(1_000)).unwrap();
    assert_eq!((seen.accounted_instances(), seen.misread_dispatches), (0, seen.dispatches));
}

/// Kernels without code for memory stress have no stress workgroups.
#[test]
fn kernels_without_memory_stress_have_no_stress_workgroups() {
    let (_, settings) = stressed_device(7);
    let device = FakeDevice::conforming(false);
    observe(&device, &settings).unwrap();
    assert!(device.stress.take().iter().all(Vec::is_empty));
    assert_eq!(device.plan.take().queues.len(), 1);
}

#[test]
fn poison_is_not_a_plausible_value() {
    let usual = {
        let device = FakeDevice::conforming(true);
        observe(&device, &settings(100)).unwrap();
        device.dispatch_parameters.borrow()[0].poison
    };
    let device = FakeDevice::conforming(true);
    observe(&device, &RunSettings { plausible_words: vec![usual], ..settings(100) }).unwrap();
    assert_ne!(device.dispatch_parameters.borrow()[0].poison, usual);
}

#[test]
fn initial_values_are_written_before_each_dispatch() {
    for is_cpu in IS_CPU {
        let mut kernel = kernel();
        kernel.initial_values = vec![5, 9];
        let device = FakeDevice::conforming(is_cpu);
        let seen =
            run(&device, &kernel, &store_buffering(), &settings(3_000), &mut |_| ControlFlow::Continue(()))
                .unwrap();
        let serial = [outcome([9, 6, 10]), outcome([10, 5, 10])];
        assert!(seen.histogram.counts.keys().all(|o| serial.contains(o)), "{seen:?}");
        assert!(seen.accounted_instances() >= 3_000);
    }
}

#[test]
fn devices_that_cannot_are_refused() {
    let mut device = FakeDevice::conforming(true);
    device.capabilities.executes = false;
    assert_eq!(observe(&device, &settings(1)).unwrap_err().cause, Cause::NullDevice);
    let mut device = FakeDevice::conforming(true);
    device.capabilities.max_storage_buffer_bytes = 16;
    assert!(matches!(observe(&device, &settings(1)).unwrap_err().cause, Cause::TooSmall(_)));
    let mut device = FakeDevice::conforming(true);
    device.capabilities.loop_budget = Some(2);
    assert!(matches!(observe(&device, &settings(1)).unwrap_err().cause, Cause::Stress(_)));
}

#[test]
fn a_kernel_that_hides_a_register_is_refused() {
    let mut kernel = kernel();
    kernel.results.remove(0);
    let device = FakeDevice::conforming(true);
    let error = run(&device, &kernel, &store_buffering(), &settings(1), &mut |_| ControlFlow::Continue(()))
        .unwrap_err();
    assert_eq!(error.to_string(), "the kernel does not fit its test: no `P0:r0`");
}

#[test]
fn a_device_that_does_not_store_is_a_null_device() {
    for is_cpu in [false, true] {
        let mut device = FakeDevice::conforming(is_cpu);
        assert_eq!(canary::check(&device, RunSettings::SUBMISSION_TIMEOUT), Ok(()));
        device.executes = false;
        assert!(device.capabilities.executes);
        assert_eq!(canary::check(&device, RunSettings::SUBMISSION_TIMEOUT), Err(Cause::NullDevice));
    }
}

/// A device with an error is not a null device: the tests show its errors.
#[test]
fn the_simulated_gpu_executes_whatever_its_fault() {
    for fault in sim::FAULTS.iter().map(|row| row.fault).chain([sim::Fault::None]) {
        let device = sim::SimDevice::new(fault);
        assert_eq!(canary::check(&device, RunSettings::SUBMISSION_TIMEOUT), Ok(()), "{fault:?}");
    }
    let scheduled = sim::SimDevice::with_progress_model("obe".parse().unwrap());
    assert_eq!(canary::check(&scheduled, RunSettings::SUBMISSION_TIMEOUT), Ok(()));
}
