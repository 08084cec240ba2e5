//! Upward and downward steps form one lattice: each upward step has an inverse, and nothing is below itself.

use litmus::test::lattice::StrengthBounds;
use litmus::{Dialect, InstructionKind, Scope, StorageClass, StorageClassSet};

/// Returns instructions of every ordering kind, with intermediate strengths.
const TEXT: &str = r"VULKAN strengths
{ x = 0; y = 0; }
P0@sg 0, wg 0, qf 0 ;
ld.sc0 r0, x ;
ld.nonpriv.sc0 r0, x ;
ld.vis.wg.sc0 r0, x ;
ld.coop.vis.wg.sc0 r0, x ;
ld.atom.wg.sc0 r0, x ;
ld.atom.acq.wg.sc0.semsc0 r0, x ;
st.sc0 x, 1 ;
st.av.dv.sc0 x, 1 ;
st.atom.rel.sg.sc0.semsc1.semav x, 1 ;
rmw.atom.sg.sc0.cas r0, x, 0, 1 ;
rmw.atom.acq.wg.sc0.semsc0.cas r0, x, 0, 1 ;
rmw.atom.acq_rel.wg.sc0.semsc0.semsc1.semav.semvis.cas.uneq_acq r0, x, 0, 1 ;
rmw.atom.rel.wg.sc0.semsc0 r0, x, 1 ;
membar.acq.sg.semsc0 ;
membar.acq_rel.wg.semsc0.semsc1.semav.semvis ;
cbar.wg 0 ;
cbar.acq_rel.wg.semsc0 0 ;
cbar.rel.sg.semsc1.semav 0 ;
exists (P0:r0 == 0)";

/// Returns everything strictly below an instruction; a removed barrier is below all of its forms.
fn below(kind: &InstructionKind) -> Vec<InstructionKind> {
    let mut found: Vec<InstructionKind> = Vec::new();
    let mut open = vec![kind.clone()];
    while let Some(kind) = open.pop() {
        for (_, weaker) in kind.weaker_forms(Dialect::Vulkan) {
            if let Some(weaker) = weaker.filter(|weaker| !found.contains(weaker)) {
                found.push(weaker.clone());
                open.push(weaker);
            }
        }
    }
    found
}

#[test]
fn every_upward_step_has_an_inverse() {
    let test = litmus::parse(TEXT, "strengths.litmus").unwrap();
    let classes = StorageClassSet::EMPTY.with(StorageClass::Buffer).with(StorageClass::Workgroup);
    let reach = StrengthBounds {
        scopes: vec![Scope::Subgroup, Scope::Workgroup, Scope::QueueFamily, Scope::Device],
        classes,
    };
    let (mut up, mut down) = (0, 0);
    for instruction in &test.threads[0].instructions {
        let kind = &instruction.kind;
        let weaker = below(kind);
        assert!(!weaker.contains(kind), "{} is below itself", kind.to_text(&test, litmus::ThreadId(0)));
        down += weaker.len();
        for (change, stronger) in kind.stronger_forms(&reach) {
            up += 1;
            let text = stronger.to_text(&test, litmus::ThreadId(0));
            assert!(below(&stronger).contains(kind), "no way back from `{text}` ({change:?})");
        }
    }
    assert!(up > 50 && down > 100, "{up} steps up and {down} forms below are too few");
}
