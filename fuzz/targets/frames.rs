//! What guests and containers send through the tap switch: virtio-net headers, and frames to be joined.
#![no_main]

use hopyard_tap::switch::fuzzing::{join_any, join_stream};
use hopyard_tap::{VnetHeader, VnetHeaderSize};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|made: (Vec<Vec<u8>>, &[u8])| {
    let (frames, stream) = made;
    for frame in &frames {
        for size in [VnetHeaderSize::Basic, VnetHeaderSize::Mergeable] {
            if let Ok(header) = VnetHeader::parse(frame, size) {
                assert_eq!(VnetHeader::parse(&header.emit(), size), Ok(header));
            }
        }
    }
    join_any(&frames);
    join_stream(stream);
});
