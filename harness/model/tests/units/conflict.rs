//! Accesses that cannot race.

use model::internals::has_only_ordered_accesses;

fn is_ordered(code: &str) -> bool {
    let text =
        format!("VULKAN test\n{{ x = 0; y = 0; }}\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n{code} ;");
    has_only_ordered_accesses(&litmus::parse(&text, "test").unwrap())
}

#[test]
fn atomics_within_both_scopes_are_ordered() {
    assert!(is_ordered("st.atom.dv.sc0 x, 1 | ld.atom.dv.sc0 r0, x"));
    assert!(is_ordered("ld.sc0 r0, x | ld.sc0 r0, x"));
    assert!(is_ordered("st.sc0 x, 1 | st.sc0 y, 1"));
}

#[test]
fn plain_accesses_and_narrow_scopes_are_not_ordered() {
    assert!(!is_ordered("st.sc0 x, 1 | ld.atom.dv.sc0 r0, x"));
    assert!(!is_ordered("st.atom.dv.sc0 x, 1 | ld.atom.wg.sc0 r0, x"));
    assert!(!is_ordered("st.atom.wg.sc0 x, 1 | rmw.atom.dv.sc0.add r0, x, 1"));
}
