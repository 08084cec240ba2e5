//! Layouts of viewports for draws.

use shaders::carrier::{VIEWPORT_SIZE, ViewportLayout};

#[test]
fn invocations_have_pixels_and_workgroups_have_cells() {
    for invocations in [1, 2, 4, 5, 8, 16, 17, 32, 64, 128, 1024] {
        for pitch in [(1, 1), (16, 16), (64, 2), (64, 64), (4096, 4096)] {
            let cells = ViewportLayout::new(invocations, pitch, 0);
            assert!(cells.size * cells.size >= invocations && cells.size.is_multiple_of(2));
            assert!((cells.size - 2) * (cells.size - 2) < invocations, "no larger than it must be");
            assert!(cells.pitch.0 >= cells.size && cells.pitch.1 >= cells.size);
            for workgroups in [1, cells.rows, cells.max_workgroups()] {
                let (width, height) = cells.extent(workgroups);
                assert!(width <= VIEWPORT_SIZE && height <= VIEWPORT_SIZE);
                let area = u64::from(width / cells.pitch.0) * u64::from(height / cells.pitch.1);
                assert!(area >= u64::from(workgroups));
            }
        }
    }
}
