//! Tests of graphics stages: weak outcomes occur as in dispatches, repeated invocations count once, and
//! helpers have no effect.

use plan::{Capabilities, Device, DeviceError, Identity, Plan, PlanStep, Prepared, StageMask};
use rspirv::spirv::Op;
use runner::{Join, RunBudget, RunSettings};
use shaders::variant::CarrierStage;
use shaders::{KernelConfig, Pipelines, Variant};
use sim::{Fault, SimDevice};

use crate::common::{
    complete_prediction, corpus_test, disallowed_outcomes, instance_count, run_variant, stress,
};

/// Stages whose invocations may be shaded repeatedly.
const STAGES: [CarrierStage; 5] = [
    CarrierStage::Vertex,
    CarrierStage::Fragment,
    CarrierStage::FragmentHelpers,
    CarrierStage::VertexFragment,
    CarrierStage::FragmentVertex,
];
/// Stages with workgroups, whose invocations run once.
const WORKGROUPS: [CarrierStage; 2] = [CarrierStage::Mesh, CarrierStage::Task];

fn in_stage(stage: CarrierStage) -> Variant {
    Variant { stage, ..Variant::default() }
}

#[test]
fn the_weak_shapes_show_in_every_stage() {
    let device = SimDevice::new(Fault::None);
    let mut missing = Vec::new();
    for id in ["mp/MP+rlx-rlx", "sb/SB+relacq-relacq", "lb/LB+rlx-rlx", "2+2w/2+2W+rlx-rlx", "iriw/IRIW+rlx"]
    {
        let test = corpus_test(id);
        for stage in STAGES.into_iter().chain(WORKGROUPS) {
            let seen =
                run_variant(&device, &test, instance_count(60_000), 5, in_stage(stage)).unwrap().unwrap();
            let meets = |outcome: &litmus::Outcome| {
                let question = test.question.as_ref();
                question.is_some_and(|q| outcome.meets_condition(&test, &test.observables(), &q.condition))
            };
            let count: u64 = seen.histogram.counts.iter().filter(|(o, _)| meets(o)).map(|(_, n)| *n).sum();
            println!("{id} {stage:?}: {count} of {}, {} repeated", seen.accounted_instances(), seen.repeated);
            if count == 0 {
                missing.push(format!("{id} {stage:?}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn repeated_invocations_follow_the_seed_and_count_once() {
    let test = corpus_test("rmw/RMW+add-add");
    let prediction = complete_prediction(&test).unwrap();
    for stage in STAGES {
        let seen = |seed| {
            let device = SimDevice::new(Fault::None);
            run_variant(&device, &test, instance_count(5_000), seed, in_stage(stage)).unwrap().unwrap()
        };
        let (one, again, other) = (seen(7), seen(7), seen(8));
        assert_eq!((&one.histogram, one.repeated), (&again.histogram, again.repeated));
        assert_ne!(one.histogram, other.histogram);
        assert!(one.repeated > 0, "{stage:?}");
        assert_eq!(disallowed_outcomes(&test, &prediction, &one), Vec::<String>::new());
    }
}

/// The simulated GPU with other stages in the dependencies of its plans.
struct StageOverride(SimDevice, StageMask);

impl Device for StageOverride {
    fn identity(&self) -> &Identity {
        self.0.identity()
    }

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Prepared + '_>, DeviceError> {
        let mut plan = plan.clone();
        for step in &mut plan.steps {
            if let PlanStep::Dependency { stages, .. } = step {
                *stages = (self.1, self.1);
            }
        }
        self.0.prepare(&plan)
    }

    fn reseed(&self, seed: u64) {
        self.0.reseed(seed);
    }
}

/// Interlocked sections show no forbidden outcome in pixel and sample modes. Unordered sections show both
/// orders.
#[test]
fn sections_of_one_pixel_exclude_each_other() {
    let device = SimDevice::new(Fault::None);
    let tests = litmus::corpus::tests();
    for entry in tests.iter().filter(|entry| entry.id.starts_with("interlock/")) {
        let test = litmus::parse(entry.text, &entry.path).unwrap();
        let prediction = complete_prediction(&test).unwrap();
        for words in ["fragment", "fragment.sample-interlock", "fragment-helpers"] {
            let variant: Variant = words.parse().unwrap();
            let seen = run_variant(&device, &test, instance_count(3_000), 3, variant).unwrap().unwrap();
            assert_eq!(seen.not_executed, 0, "{} {words}", entry.id);
            if prediction.race == litmus::Race::Free {
                assert_eq!(
                    disallowed_outcomes(&test, &prediction, &seen),
                    Vec::<String>::new(),
                    "{} {words}",
                    entry.id
                );
            }
            let allowed = prediction.outcomes.values().filter(|says| says.allowed).count();
            if test.interlock_order() == Some(litmus::InterlockOrder::Unordered) {
                assert!(allowed > 1 && seen.histogram.counts.len() > 1, "{} {words}: {seen:?}", entry.id);
            }
        }
    }
}

#[test]
fn a_dependency_orders_the_stages_that_it_names() {
    let test = corpus_test("ssw/MP+ssw");
    let prediction = complete_prediction(&test).unwrap();
    let stages = [
        (CarrierStage::Vertex, StageMask::VERTEX),
        (CarrierStage::Fragment, StageMask::FRAGMENT),
        (CarrierStage::Mesh, StageMask::MESH),
        (CarrierStage::Task, StageMask::TASK),
    ];
    for (stage, own) in stages {
        for (named, ordered) in [
            (own, true),
            (own.with(StageMask::COMPUTE), true),
            (StageMask::ALL, true),
            (StageMask::COMPUTE, false),
        ] {
            let device = StageOverride(SimDevice::new(Fault::None), named);
            let stress = stress(&device.0);
            let config =
                KernelConfig { variant: in_stage(stage), ..stress.kernel_config(device.capabilities()) };
            let program = shaders::compile_program(&test, &config, Pipelines::Merged).unwrap();
            let settings = RunSettings::new(stress, RunBudget::instances(instance_count(3_000)), 3);
            let on_progress = &mut |_: &runner::RunProgress<'_>| std::ops::ControlFlow::Continue(());
            let seen = runner::run_program(
                &device,
                &program,
                Join::Barrier,
                plan::BufferMemory::Device,
                &test,
                &settings,
                on_progress,
            )
            .unwrap();
            assert_eq!(
                disallowed_outcomes(&test, &prediction, &seen).is_empty(),
                ordered,
                "{stage:?} {named:?}"
            );
        }
    }
}

/// Workgroups of mesh and task shaders share memory and synchronize like compute workgroups. Each invocation
/// runs once, and a device whose barriers do not wait is detected.
#[test]
fn workgroups_of_mesh_and_task_shaders_meet() {
    let run = |fault, id: &str, stage| {
        let test = corpus_test(id);
        let prediction = complete_prediction(&test).unwrap();
        let device = SimDevice::new(fault);
        let seen = run_variant(&device, &test, instance_count(20_000), 5, in_stage(stage)).unwrap().unwrap();
        assert_eq!((seen.repeated, seen.not_executed), (0, 0), "{id} {stage:?}");
        disallowed_outcomes(&test, &prediction, &seen)
    };
    for (id, stage) in ["barrier/MP+cbar", "classes/MP+cbar.sc1", "mp/MP+rel-acq.wg"]
        .into_iter()
        .flat_map(|id| WORKGROUPS.map(|stage| (id, stage)))
    {
        assert_eq!(run(Fault::None, id, stage), Vec::<String>::new(), "{id} {stage:?}");
        if id.contains("cbar") {
            assert!(!run(Fault::BarrierDoesNotWait, id, stage).is_empty(), "{id} {stage:?}");
        }
    }
}

/// Returns a plan with a kernel of a stage, and no steps.
fn plan_of(device: &SimDevice, stage: CarrierStage) -> Plan {
    let config =
        KernelConfig { variant: in_stage(stage), ..stress(device).kernel_config(device.capabilities()) };
    let kernel = shaders::compile(&corpus_test("mp/MP+rlx-rlx"), &config).unwrap();
    let buffer = plan::Buffer { words: 64, memory: plan::BufferMemory::Device, name: "memory" };
    let bindings = kernel.bindings.len() as u32;
    Plan {
        buffers: vec![buffer; bindings as usize],
        queues: vec![plan::Queue { family: 0 }],
        kernels: vec![plan::Kernel {
            push_constant_bytes: kernel.push_constant_bytes(),
            words: kernel.words,
            bindings,
            ..plan::Kernel::default()
        }],
        ..Plan::default()
    }
}

/// The machine does not rasterize primitives or launch meshes: it refuses the outputs of mesh and task
/// shaders by name.
#[test]
fn outputs_of_mesh_and_task_shaders_are_refused() {
    let device = SimDevice::new(Fault::None);
    for (stage, op, message) in [
        (CarrierStage::Mesh, Op::SetMeshOutputsEXT, "OpSetMeshOutputsEXT of an operand"),
        (CarrierStage::Task, Op::EmitMeshTasksEXT, "OpEmitMeshTasksEXT of an operand"),
    ] {
        let mut plan = plan_of(&device, stage);
        let words = &mut plan.kernels[0].words;
        let given = words.iter().rposition(|word| word & 0xffff == op as u32 && word >> 16 >= 3).unwrap();
        let is_constant = |words: &&[u32]| words[0] == (4 << 16) | Op::Constant as u32 && words[3] == 1;
        let one = words.windows(4).find(is_constant).unwrap()[2];
        words[given + 1] = one;
        let error = device.prepare(&plan).err().unwrap().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_kernel_of_another_stage_than_its_entry_point_is_refused() {
    let device = SimDevice::new(Fault::None);
    let why = "kernel 0: an entry point of another stage than the kernel".to_owned();
    assert_eq!(
        device.prepare(&plan_of(&device, CarrierStage::Vertex)).err(),
        Some(DeviceError::InvalidPlan(why))
    );
}
