//! The accesses of dependencies: from the masks of tests to those of plans.

use litmus::AccessMask;
use plan::Accesses;

/// Converts an access mask of a test to that of a step.
pub fn accesses(mask: AccessMask) -> Accesses {
    let kinds = KINDS.iter().filter(|(own, _)| mask.intersects(*own));
    kinds.fold(Accesses::NONE, |all, (_, kind)| all.with(*kind))
}

/// Pairs the accesses of tests with those of plans.
const KINDS: [(AccessMask, Accesses); 9] = [
    (AccessMask::SHADER_READ, Accesses::SHADER_READ),
    (AccessMask::SHADER_WRITE, Accesses::SHADER_WRITE),
    (AccessMask::UNIFORM_READ, Accesses::UNIFORM_READ),
    (AccessMask::TRANSFER_READ, Accesses::TRANSFER_READ),
    (AccessMask::TRANSFER_WRITE, Accesses::TRANSFER_WRITE),
    (AccessMask::HOST_READ, Accesses::HOST_READ),
    (AccessMask::HOST_WRITE, Accesses::HOST_WRITE),
    (AccessMask::MEMORY_READ, Accesses::MEMORY_READ),
    (AccessMask::MEMORY_WRITE, Accesses::MEMORY_WRITE),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_masks_of_tests_and_of_plans_have_the_same_words() {
        for mask in AccessMask::single_accesses() {
            let words: Vec<_> = mask.words().collect();
            assert_eq!(accesses(mask).member_names().collect::<Vec<_>>(), words);
        }
        assert_eq!(Accesses::single_accesses().count(), AccessMask::single_accesses().count());
        assert_eq!(accesses(AccessMask::NONE), Accesses::NONE);
    }
}
