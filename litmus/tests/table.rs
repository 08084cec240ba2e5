//! Tables indexed by typed ids.

use litmus::RegisterId;
use litmus::test::Table;

#[test]
fn a_missing_entry_is_an_error_with_its_name() {
    let mut table: Table<RegisterId, u32> = [7, 8].into_iter().collect();
    assert_eq!(table.get(RegisterId(1)), Ok(&8));
    table.set(RegisterId(0), 9).unwrap();
    assert_eq!(table.entries(), [9, 8]);
    assert_eq!(table.get(RegisterId(2)).unwrap_err().to_string(), "internal: no register 2");
    assert!(table.set(RegisterId(2), 0).is_err());
}
