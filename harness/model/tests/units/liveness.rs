//! Live registers.

use litmus::{Flow, InstructionKind};
use model::internals::{live_registers, strongly_live_registers};

#[test]
fn registers_assigned_before_use_are_dead_at_the_loop_head() {
    let text = "VULKAN spin\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 ;\nLC00: ;\nld.atom.dv.sc0 r0, x ;\nadd r1, r1, 1 ;\nbne r0, 1, LC00 ;";
    let test = litmus::parse(text, "spin").unwrap();
    let thread = &test.threads[0];
    let live = live_registers(&thread.instructions, &vec![true; thread.registers.len()]);
    let register = |name: &str| thread.registers.iter().position(|r| r.name == name).unwrap();
    let head = thread
        .instructions
        .iter()
        .position(|i| matches!(i.kind, InstructionKind::Flow(Flow::Label(_))))
        .unwrap();
    assert!(!live[head][register("r0")]);
    assert!(live[head][register("r1")]);
}

/// A delay that grows in each turn has no effect, unless the turns end by it.
#[test]
fn registers_that_only_compute_themselves_are_not_strongly_live() {
    let is_delay_live = |last: &str| {
        let text = format!(
            "VULKAN spin\n{{ x = 0; }}\nP0@sg 0, wg 0, qf 0 ;\nLC00: ;\nld.atom.dv.sc0 r0, x ;\nadd r1, r1, r1 ;\n\
             add r2, r1, 1 ;\n{last} ;\nbne r0, 1, LC00 ;"
        );
        let test = litmus::parse(&text, "spin").unwrap();
        let thread = &test.threads[0];
        let live = strongly_live_registers(&thread.instructions, &vec![false; thread.registers.len()]);
        let register = thread.registers.iter().position(|r| r.name == "r1").unwrap();
        live[0][register]
    };
    assert!(!is_delay_live("add r2, r2, 1"));
    assert!(is_delay_live("beq r2, 9, LC00"));
    assert!(is_delay_live("st.atom.dv.sc0 x, r2"));
}
