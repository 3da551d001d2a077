package plugin

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/socket"
)

// Network describes plugins to package paths.
var Network = transport.Network{
	Name: "plugin",
	Probe: func(o transport.NetworkOptions) (f transport.Found, err error) {
		l, err := Load(File(o.Plugin.Library), nil)
		if err != nil {
			return f, err
		}
		if want := o.Plugin.Named; want != "" && !strings.EqualFold(want, l.Name) {
			return f, fmt.Errorf("plugin %s is network %s", filepath.Base(l.File), l.Name)
		}
		devices, err := l.usable(headerLen)
		if err != nil {
			return f, err
		}
		f.Kind = "the plugin of network " + l.Name
		for _, d := range devices {
			f.Devices = append(f.Devices, transport.NetworkDevice{
				Name: d.Name, Mbps: d.Speed, Detail: fmt.Sprintf("%s v%d %s", l.Name, l.Version, l.File),
			})
		}
		return f, nil
	},
	Open: func(cfg transport.Config, o transport.NetworkOptions) transport.Transport {
		l, err := Load(File(o.Plugin.Library), cfg.Log)
		t := New(cfg, l, Options{
			Listen: func() (net.Listener, string, error) { return socket.Listen(o) },
			Rail:   o.Rail,
			Kind:   fmt.Sprintf("%q %d %v", o.Interface, o.Family, o.Local),
		})
		t.bad = err
		return t
	},
}
