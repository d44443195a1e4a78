//! Kernels as nvcc compiles them, optimised and not. The sources lie beside them in `test_data`.

use model::Dim3;

use crate::harness::{Arg, Device};

const FIRST: [&str; 2] =
    [include_str!("../../test_data/first.sm_90.ptx"), include_str!("../../test_data/first.sm_80.O0.ptx")];

#[test]
fn vector_add() {
    for text in FIRST {
        let mut device = Device::new(text);
        let n = 1000;
        let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let b: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
        let (a, b, c) = (device.upload_f32(&a), device.upload_f32(&b), device.alloc(4 * n));
        let arguments = [Arg::U64(a), Arg::U64(b), Arg::U64(c), Arg::U32(n as u32)];
        device.run("vector_add", Dim3::new(4, 1, 1), Dim3::new(256, 1, 1), &arguments);
        let sums: Vec<f32> = (0..n).map(|i| 1.5 * i as f32).collect();
        assert_eq!(device.read_f32(c, n), sums);
    }
}

#[test]
fn reduction_with_shuffles() {
    for text in FIRST {
        let mut device = Device::new(text);
        let n = 10_000;
        let values: Vec<f32> = (0..n).map(|i| (i % 7) as f32).collect();
        let (values_at, out) = (device.upload_f32(&values), device.alloc(4));
        let arguments = [Arg::U64(values_at), Arg::U64(out), Arg::U32(n as u32)];
        device.run("reduce", Dim3::new(5, 1, 1), Dim3::new(256, 1, 1), &arguments);
        assert_eq!(device.read_f32(out, 1)[0], values.iter().sum::<f32>());
    }
}

#[test]
fn matrix_product_in_shared_memory() {
    for text in FIRST {
        let mut device = Device::new(text);
        let n = 64;
        let a: Vec<f32> = (0..n * n).map(|i| (i % 13) as f32).collect();
        let b: Vec<f32> = (0..n * n).map(|i| (i % 5) as f32 - 2.0).collect();
        let (at, bt, ct) = (device.upload_f32(&a), device.upload_f32(&b), device.alloc(4 * n * n));
        let arguments = [Arg::U64(at), Arg::U64(bt), Arg::U64(ct), Arg::U32(n as u32)];
        device.run("matrix_multiply", Dim3::new(4, 4, 1), Dim3::new(16, 16, 1), &arguments);
        let c = device.read_f32(ct, n * n);
        for (row, column) in [(0, 0), (3, 17), (63, 63)] {
            let sum: f32 = (0..n).map(|k| a[row * n + k] * b[k * n + column]).sum();
            assert_eq!(c[row * n + column], sum);
        }
    }
}

#[test]
fn histogram_with_atomics() {
    for text in FIRST {
        let mut device = Device::new(text);
        let bytes: Vec<u8> = (0..5000u32).map(|i| (i * i % 251) as u8).collect();
        let (input, bins) = (device.upload(&bytes, |byte| vec![*byte]), device.alloc(1024));
        let arguments = [Arg::U64(input), Arg::U64(bins), Arg::U32(5000)];
        device.run("histogram", Dim3::new(3, 1, 1), Dim3::new(96, 1, 1), &arguments);
        let counted = device.read_u32(bins, 256);
        let mut expected = vec![0; 256];
        bytes.iter().for_each(|byte| expected[usize::from(*byte)] += 1);
        assert_eq!(counted, expected);
    }
}
