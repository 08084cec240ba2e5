//! Live registers.

use litmus::{Flow, InstructionKind};
use model::internals::live_registers;

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
