#!/usr/bin/env bash
# Makes demo.flv, the clip that `make demo` publishes and that the tests measure.
#
#   16 s, 640x360, 30 fps, H.264 main without B-frames, a key frame every 2 s; AAC-LC 48 kHz mono.
#   Each second a white square flashes for 3 frames while a 1 kHz tone sounds for 100 ms: whoever
#   sees and hears both at once has picture and sound in sync. The clock gives the time in the loop.
#
# 16 s is a whole number of frames (480), GOPs (8) and AAC frames (750), so the clip loops without
# a seam. It is cut out of a longer encoding at 8 s, the first moment where a key frame and an AAC
# frame begin together; so it has no encoder priming and both tracks start at 0. (The tone is made
# one AAC frame early and stamped one later, so that the priming has a time that is not negative.)
#
# Needs ffmpeg 5 with libx264 and the DejaVu fonts: `make setup` has both.
set -euo pipefail
cd "$(dirname "$0")"

mono=/usr/share/fonts/truetype/dejavu/DejaVuSansMono-Bold.ttf
sans=/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf
lead=240 # frames before the cut; everything is counted in frames, so nothing is rounded
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

clock="%{eif\:floor(mod(n-$lead+480\,480)/30)\:d\:2}.%{eif\:floor(mod(n\,30)*1000/30+0.5)\:d\:3}"
picture="
color=c=0x0d1420:s=640x360:r=30,format=yuv420p,
drawbox=x=0:y=262:w=640:h=26:color=0x1b2738:t=fill,
drawtext=fontfile=$mono:fontsize=104:fontcolor=0xe8eef6:x=48:y=96:text='$clock',
drawtext=fontfile=$sans:fontsize=22:fontcolor=0x7fa6c9:x=52:y=48:text='Weir demo clip',
drawtext=fontfile=$sans:fontsize=18:fontcolor=0x8796a8:x=52:y=214:text='flash and beep meet at every second',
drawtext=fontfile=$mono:fontsize=18:fontcolor=0x8796a8:x=52:y=310:text='frame %{eif\:mod(n-$lead+480\,480)\:d\:3} of 480',
drawbox=x=484:y=36:w=120:h=120:color=0x1b2738:t=fill,
drawbox=x=484:y=36:w=120:h=120:color=white:t=fill:enable='lt(mod(n\,30)\,3)'[scene];
color=c=0x3d8fd6:s=22x26:r=30[bar];
[scene][bar]overlay=x='mod(round(t*30)\,30)*640/30':y=262:eval=frame,format=yuv420p[picture];
aevalsrc=0.4*sin(2*PI*1000*t)*lt(mod(t+1024/48000\,1)\,0.1):s=48000,asetpts=PTS+1024[tone]"

ffmpeg -hide_banner -loglevel error -y -filter_complex "$picture" \
  -map '[picture]' -map '[tone]' -t 26 -fflags +bitexact -flags:v +bitexact -flags:a +bitexact \
  -c:v libx264 -profile:v main -preset veryslow -crf 20 -bf 0 -threads 1 \
  -g 60 -keyint_min 60 -sc_threshold 0 -x264-params 'force-cfr=1' \
  -c:a aac -b:a 64k -ac 1 "$work/long.nut"

ffmpeg -hide_banner -loglevel error -y -i "$work/long.nut" -ss 8 -t 16 -c copy \
  -fflags +bitexact -map_metadata -1 -flvflags +no_sequence_end "$work/demo.flv"
mv "$work/demo.flv" demo.flv
