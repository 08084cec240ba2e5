//! Values that a program stores.

use litmus::{LocationId, Value};

use model::internals::stored_values;

fn storage_values_of(code: &str) -> Option<Vec<Value>> {
    let text = format!(
        "VULKAN stored\n{{ l = 0; u32x2 v = 0; k aliases l; P0:r8 = 1; }}\nP0@sg 0, wg 0, qf 0 ;\n{code} ;"
    );
    let text = if code.contains(" k,") { text } else { text.replace("k aliases l; ", "") };
    stored_values(&litmus::parse(&text, "stored").unwrap(), LocationId(0))
}

#[test]
fn constants_and_their_combinations_are_known() {
    assert_eq!(
        storage_values_of("rmw.atom.dv.sc0 r0, l, 1 ;\nst.atom.dv.sc0 l, 0"),
        Some(vec![Value(0), Value(1)])
    );
    assert_eq!(
        storage_values_of("rmw.atom.dv.sc0.or r0, l, 1 ;\nrmw.atom.dv.sc0.or r0, l, 2"),
        Some(vec![Value(0), Value(1), Value(2), Value(3)])
    );
    assert_eq!(storage_values_of("ld.atom.dv.sc0 r0, l"), Some(vec![Value(0)]));
}

#[test]
fn registers_counters_parts_and_aliases_are_not() {
    assert_eq!(storage_values_of("st.atom.dv.sc0 l, r8"), None);
    assert_eq!(storage_values_of("rmw.atom.dv.sc0.add r0, l, 1"), None);
    assert_eq!(storage_values_of("st.sc0.u16 l, 1"), None);
    assert_eq!(storage_values_of("st.sc0 k, 1"), None);
}
