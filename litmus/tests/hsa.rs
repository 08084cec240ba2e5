//! Lowering of HSA tests: refusals, renamed items, and the mapping of outcomes.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use litmus::{InstructionKind, LoweringError, Outcome, Scope, Test, Value, lower_to_vulkan};

fn parsed(text: &str) -> Test {
    litmus::parse(text, "test").unwrap_or_else(|errors| panic!("{:?}\n{text}", errors.messages()))
}

/// Returns two work-items with one instruction each, the second in `place`.
fn pair(place: &str, first: &str, second: &str) -> Test {
    parsed(&format!(
        "HSA t\n{{ x = 0; group g = 0; }}\nP0@wave 0, wg 0, agent 0 | P1@{place} ;\n{first} | {second} ;\nexists (x = 0)"
    ))
}

#[test]
fn agent_scope_between_agents_has_no_program() {
    const FAR: &str = "wave 0, wg 0, agent 1";
    const NEAR: &str = "wave 0, wg 1, agent 0";
    let store = |scope: &str| format!("atomic_st_global_screl_{scope}_u32 1, [x]");
    let load = |scope: &str| format!("atomic_ld_global_scacq_{scope}_u32 $s0, [x]");
    let rules = [
        (FAR, "agent", "agent", true),
        (FAR, "agent", "system", true),
        (FAR, "system", "agent", true),
        (FAR, "system", "system", false),
        // Operations of work-group scope reach no other agent, before or after lowering.
        (FAR, "agent", "wg", false),
        (FAR, "wg", "agent", false),
        (NEAR, "agent", "agent", false),
        (NEAR, "agent", "system", false),
    ];
    for (place, first, second, refused) in rules {
        let lowered = lower_to_vulkan(&pair(place, &store(first), &load(second)));
        let is_refused = matches!(lowered, Err(LoweringError::AgentScope { .. }));
        assert_eq!(is_refused, refused, "{place}: {first}, {second}");
        assert!(refused || lowered.is_ok(), "{place}: {first}, {second}");
    }
    // On the group segment, every scope is limited to the work-group.
    assert!(lower_to_vulkan(&pair(FAR, "atomic_st_group_screl_agent_u32 1, [g]", &load("system"))).is_ok());
    let fence = lower_to_vulkan(&pair(FAR, "memfence_scar_agent", &load("system"))).unwrap_err();
    assert_eq!((fence.to_string().as_str(), fence.span().line), ("agent scope between agents", 4));
}

#[test]
fn too_large_programs_are_refused() {
    // Each comparison needs a register, since the branch after a label cannot be folded into it.
    let mut text = "HSA t\n{ x = 0; }\nP0@wave 0, wg 0, agent 0 ;\n".to_owned();
    for index in 0..120 {
        text += &format!(
            "cmp_eq_b1_u32 $c{index}, $s0, {index} ;\n@a{index}: ;\ncbr_b1 $c{index}, @b{index} ;\n@b{index}: ;\n"
        );
    }
    let error = lower_to_vulkan(&parsed(&(text + "exists (x = 0)"))).unwrap_err();
    assert!(matches!(error, LoweringError::TooLarge { .. }), "{error:?}");
    assert_eq!(error.to_string(), "HSA test too large for a Vulkan program");
}

#[test]
fn names_that_clash_with_the_native_dialect_are_mapped() {
    let hsa = parsed(
        "HSA t\n{ dv = 0; dv_ = 1; group r0 = 2; P0:$s7 = 3; }\nP0@wave 0, wg 0, agent 0 ;\n\
         ld_global_u32 $s0, [dv] ;\nld_group_u32 $s1, [r0] ;\natomicnoret_add_global_rlx_wg_u32 [dv_], 5 ;\n\
         exists (dv_ = 6 /\\ P0:$s7 = 3 /\\ P0:$s1 = 2)",
    );
    let lowered = lower_to_vulkan(&hsa).unwrap();
    let names: Vec<&str> = lowered.test.locations.iter().map(|location| location.name.as_str()).collect();
    assert_eq!(names, ["dv__", "dv_", "r0_"]);
    let observed = |test: &Test| -> Vec<String> {
        test.observables().into_iter().map(|observable| test.observable_name(observable)).collect()
    };
    assert_eq!(observed(&lowered.test), ["P0:r0", "P0:r1", "P0:r8", "dv_"]);
    assert_eq!(observed(&lowered.with_hsa_names(&hsa)), ["P0:$s0", "P0:$s1", "P0:r8", "dv_"]);
    assert_eq!(observed(&hsa), ["P0:$s0", "P0:$s1", "dv_"]);
    let outcome = Outcome([0, 2, 1, 6].map(Value).to_vec());
    let original = lowered.to_hsa_outcome(&hsa, &hsa.observables(), &outcome);
    assert_eq!(original, Outcome([0, 2, 6].map(Value).to_vec()));
    let question = hsa.question.as_ref().unwrap();
    assert!(original.meets_condition(&hsa, &hsa.observables(), &question.condition));
    let question = lowered.test.question.as_ref().unwrap();
    assert!(outcome.meets_condition(&lowered.test, &lowered.test.observables(), &question.condition));
}

#[test]
fn scopes_are_those_of_a_device() {
    let lowered =
        |first: &str| lower_to_vulkan(&pair("wave 0, wg 0, agent 0", first, "mov_u32 $s9, 1")).unwrap().test;
    let fences = |scope: &str| -> Vec<Scope> {
        let test = lowered(&format!("memfence_scar_{scope}"));
        let kinds = test.threads[0].instructions.iter().map(|instruction| &instruction.kind);
        kinds
            .filter_map(|kind| match kind {
                InstructionKind::Fence { scope, .. } => Some(*scope),
                _ => None,
            })
            .collect()
    };
    let scopes = ["wi", "wave", "wg", "agent", "system"].map(fences);
    let expected = [Scope::Subgroup, Scope::Workgroup, Scope::Device, Scope::Device];
    assert_eq!(scopes[0], []);
    assert_eq!(scopes[1..].concat(), expected);
    let atomic = |word: &str| match lowered(word).threads[0].instructions[0].kind {
        InstructionKind::Access(access) => access.strength.scope().unwrap(),
        ref other => panic!("{other:?}"),
    };
    assert_eq!(atomic("atomic_exch_group_scar_system_u32 $s0, [g], 1"), Scope::Workgroup);
    assert_eq!(atomic("atomic_exch_group_scar_wave_u32 $s0, [g], 1"), Scope::Subgroup);
    assert_eq!(atomic("atomic_exch_global_scar_system_u32 $s0, [x], 1"), Scope::Device);
}

/// Instructions outside the dialect are refused by name. They cannot be parsed, but a program can construct
/// them.
#[test]
fn foreign_instructions_are_refused_by_name() {
    let text = "HSA t { x = 0; } P0@wave 0, wg 0, agent 0 ; st_global_u32 1, [x] ; exists (x = 1)";
    let mut test = litmus::parse(text, "t").unwrap();
    let calls = InstructionKind::ShaderCall(Vec::new());
    test.threads[0].instructions[0].kind = calls.clone();
    let error = lower_to_vulkan(&test).unwrap_err();
    assert_eq!(error.to_string(), "shader calls in an HSA test");
    assert!(matches!(error, LoweringError::Foreign { what, .. } if what == calls.name()));
}
