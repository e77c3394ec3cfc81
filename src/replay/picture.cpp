#include "replay/picture.h"

#include <fmt/format.h>

#include <algorithm>

namespace cotenant::replay {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 440;
constexpr double kLeft = 60;
constexpr double kRight = 130;  // names stand there
constexpr double kTop = 20;
constexpr double kBottom = 50;
constexpr std::array<const char*, 8> kColours = {"#0b6e4f", "#c1292e", "#235789", "#f19953",
                                                 "#7b4b94", "#5f5f5f", "#b38a00", "#00a6a6"};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::array<double, 8> medians(const PictureLine& line) {
  std::array<double, 8> out{};
  for (std::size_t level = 0; level < out.size(); ++level) {
    std::vector<double> values;
    for (const auto& run : line.runs) values.push_back(run[level]);
    if (!values.empty()) out[level] = median(std::move(values));
  }
  return out;
}

double x_of(double arrived) {
  const auto& levels = FillUpResult::kLevels;
  return kLeft +
         (arrived - levels.front()) / (levels.back() - levels.front()) * (kWidth - kLeft - kRight);
}

double y_of(double unallocated, double top) {
  return kHeight - kBottom - unallocated / top * (kHeight - kTop - kBottom);
}

}  // namespace

std::string draw_picture(const std::vector<PictureLine>& lines) {
  double top = 5;
  for (const PictureLine& line : lines) {
    for (const double value : medians(line)) {
      while (value > top) top += 5;
    }
  }
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth, kHeight);
  for (double tick = 0; tick <= top; tick += 5) {
    svg += fmt::format(
        "<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        kLeft, y_of(tick, top), kWidth - kRight, y_of(tick, top), kLeft - 6, y_of(tick, top) + 4,
        tick);
  }
  for (const double level : FillUpResult::kLevels) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>\n",
                       x_of(level), kHeight - kBottom + 18, level * 100);
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">demand arrived, % of the GPUs</text>\n"
      "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">unallocated GPU %"
      "</text>\n",
      (kLeft + kWidth - kRight) / 2, kHeight - 10, (kTop + kHeight - kBottom) / 2);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::array<double, 8> values = medians(lines[i]);
    std::string points;
    for (std::size_t level = 0; level < values.size(); ++level) {
      points += fmt::format("{:.1f},{:.1f} ", x_of(FillUpResult::kLevels[level]),
                            y_of(values[level], top));
    }
    const char* colour = kColours[i % kColours.size()];
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                       points, colour);
    const double y = kTop + 16 * static_cast<double>(i) + 12;
    svg += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{} {:.2f}</text>\n",
                       kWidth - kRight + 8, y, colour, lines[i].name, values.back());
  }
  return svg + "</svg>\n";
}

}  // namespace cotenant::replay
