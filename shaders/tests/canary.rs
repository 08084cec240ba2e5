//! The canary kernel: it shows whether a driver executes dispatches, and how often.

#[test]
fn the_kernels_keep_the_rules_of_modules() {
    use shaders::canary::{counting_kernel, counting_kernel_with_image, kernel};
    for kernel in [kernel(), counting_kernel(), counting_kernel_with_image()] {
        crate::common::assert_valid_uses(&kernel);
    }
}

#[test]
fn a_tally_counts_repetitions() {
    let token = 0x5ca1_ab1e;
    let repeats = |tally: u32| shaders::canary::is_repeated(&[token, tally, token, !token], token);
    for once in [0, 1, token, token.wrapping_mul(2), !token, 0x9e37_79b1] {
        assert!(!repeats(once), "{once:#x}");
    }
    assert!((3..8).all(|times| repeats(token.wrapping_mul(times))));
    assert!(!shaders::canary::is_repeated(&[], token) && !shaders::canary::is_repeated(&[0; 4], 0));
}
