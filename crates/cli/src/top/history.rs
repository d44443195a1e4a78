//! How much of the GPU each tenant had lately, for its little curve.

use std::collections::{HashMap, VecDeque};

use daemon::scene::Scene;

/// How many samples are kept of a tenant.
pub const KEPT: usize = 60;

/// From nothing to all of the GPU.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[derive(Debug, Default)]
pub struct History {
    samples: HashMap<(String, String), VecDeque<f64>>,
}

impl History {
    /// Takes what a scene says, and forgets who is not in it.
    pub fn take(&mut self, scene: &Scene) {
        let mut earlier = std::mem::take(&mut self.samples);
        for gpu in &scene.gpus {
            for tenant in &gpu.tenants {
                let key = (gpu.uuid.clone(), tenant.number.clone());
                let mut samples = earlier.remove(&key).unwrap_or_default();
                samples.extend(tenant.figures.rates.map(|rates| rates.gpu));
                while samples.len() > KEPT {
                    samples.pop_front();
                }
                self.samples.insert(key, samples);
            }
        }
    }

    /// The last samples as bars, the newest at the right end.
    pub fn curve(&self, gpu: &str, tenant: &str, width: usize) -> String {
        let samples = self.samples.get(&(gpu.to_owned(), tenant.to_owned()));
        let samples = samples.into_iter().flatten();
        let bars: Vec<char> = samples.map(|part| bar(*part)).collect();
        let shown = &bars[bars.len().saturating_sub(width)..];
        let blank = width - shown.len();
        std::iter::repeat_n(' ', blank).chain(shown.iter().copied()).collect()
    }
}

fn bar(part: f64) -> char {
    // A conversion from a float saturates, so anything finds a bar.
    BARS[((part * BARS.len() as f64) as usize).min(BARS.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_rise_with_the_part_of_the_gpu_and_end_at_all_of_it() {
        let bars: String = [-1.0, 0.0, 0.12, 0.13, 0.5, 0.99, 1.0, 1.7, f64::NAN].map(bar).iter().collect();
        assert_eq!(bars, "▁▁▁▂▅███▁");
    }
}
