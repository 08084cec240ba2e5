//! Chains whose links synchronize through different storage classes.
//!
//! Happens-before of one class ends where that of another begins. Availability or visibility must therefore
//! carry the payload, and no order of accesses hides its absence.

use super::columns::{ProgramColumn, ProgramColumns};
use super::{ProgramFamily, RandomProgram, SplitMix64};

const SCOPES: [&str; 7] = ["sg", "wg", "wg", "qf", "qf", "dv", "dv"];
const FLAG_SCOPES: [&str; 4] = ["dv", "dv", "qf", "wg"];
const CLASSES: [&str; 3] = ["semsc0", "semsc2", "semsc0.semsc2"];
const FLAGS: [&str; 3] = ["f", "g", "h"];

/// The program of a seed: a payload in a buffer, flags in images, three or four agents, and at the end a read or a write.
pub fn generate_classes_program(seed: u64) -> RandomProgram {
    let mut random = SplitMix64(seed);
    let random = &mut random;
    let agents = random.pick(&[3, 3, 4, 4]);
    let writes = random.chance(30);
    let mut program = ProgramColumns::declaring(&["buffer x = 0"]);
    for agent in 0..agents {
        let family = usize::from(random.chance(25));
        // Workgroups of different families are different ones.
        let workgroup = random.pick(&[0, 1, 1]) + 2 * family;
        let mut column = ProgramColumn::at(family, workgroup, random.pick(&[0, 0, 1]));
        column.lines = generate_thread(random, agent, agents, writes);
        program.columns.push(column);
    }
    program.declarations.extend(FLAGS[..agents - 1].iter().map(|flag| format!("image {flag} = 0")));
    let received_flags: String = (1..agents).map(|agent| format!("P{agent}:r0 == 1 /\\ ")).collect();
    let end = if writes { "x == 1".to_owned() } else { format!("P{}:r1 == 0", agents - 1) };
    program.question = format!("{received_flags}{end}");
    let text = program.render(&format!("classes-{seed}"));
    RandomProgram { family: ProgramFamily::Classes(agents), text, bound: 1 }
}

fn generate_thread(random: &mut SplitMix64, agent: usize, agents: usize, writes: bool) -> Vec<String> {
    let mut code = Vec::new();
    if agent == 0 {
        code.push(match random.chance(50) {
            true => format!("st.av.{}.sc0 x, 1", random.pick(&SCOPES)),
            false => "st.nonpriv.sc0 x, 1".to_owned(),
        });
        push_fence(random, &mut code);
    } else {
        let flag = FLAGS[agent - 1];
        let scope = random.pick(&FLAG_SCOPES);
        code.push(match random.chance(50) {
            true => format!("ld.atom.{scope}.sc2 r0, {flag}"),
            false => {
                let visible = random.pick(&["", ".semvis"]);
                format!("ld.atom.acq.{scope}.sc2.{}{visible} r0, {flag}", random.pick(&CLASSES))
            }
        });
        push_fence(random, &mut code);
        push_fence(random, &mut code);
    }
    code.push(if agent + 1 < agents {
        let available = random.pick(&["", ".semav"]);
        let (scope, class) = (random.pick(&FLAG_SCOPES), random.pick(&CLASSES));
        format!("st.atom.rel.{scope}.sc2.{class}{available} {}, 1", FLAGS[agent])
    } else if writes {
        "st.nonpriv.sc0 x, 2".to_owned()
    } else if random.chance(50) {
        format!("ld.vis.{}.sc0 r1, x", random.pick(&SCOPES))
    } else {
        "ld.nonpriv.sc0 r1, x".to_owned()
    });
    code
}

fn push_fence(random: &mut SplitMix64, code: &mut Vec<String>) {
    if random.chance(50) {
        let available = random.pick(&["", ".semav"]);
        let visible = random.pick(&["", ".semvis"]);
        let (scope, class) = (random.pick(&SCOPES), random.pick(&CLASSES));
        code.push(format!("membar.acq_rel.{scope}.{class}{available}{visible}"));
    }
}
